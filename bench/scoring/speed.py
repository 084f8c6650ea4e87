"""Measures the speed of the Rust engine on events of 1 KB on one core, beside the Python reference with its rules.

Both take the same two kinds of events: prose made of the sentences of the engine's own benchmark, and the same prose of
which every hundredth event ends with an example of a rule. The engine times itself (example `scoring`); an event is one
scan and its judgement. Both are pinned to one core and take turns, so that a slow minute hits both. Rates are by the
processor's time, percentiles by the clock on the wall.
"""

from __future__ import annotations

import os
import random
import re
import statistics
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.scoring.engine import EngineError
from bench.scoring.reference import Reference
from bench.scoring.rules import CRATE, Rule, load_packs, pack_names

SENTENCES = CRATE / "examples" / "prose" / "mod.rs"
EVENT_BYTES = 1024
KINDS = ("clean prose", "1 % matching")

Spread = dict[str, float]
Figures = dict[str, float]


def compare(binary: Path, rounds: int, events: int, reference_events: int) -> dict[str, Any]:
    """Runs all rounds, at least three. Raises EngineError."""
    rules = load_packs()
    prompts = prose(reference_events, seed=1)
    inputs = {KINDS[0]: prompts, KINDS[1]: with_matches(prompts, rules)}
    reference = Reference(rules)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    engine_rounds, reference_rounds = [], []
    for _ in range(max(rounds, 3)):
        engine_rounds.append(engine_round(binary, events))
        reference_rounds.append({kind: reference_round(reference, texts) for kind, texts in inputs.items()})
    os.sched_setaffinity(0, cores)
    return {
        "method": {
            "event_bytes": EVENT_BYTES,
            "engine_events": events,
            "reference_events": reference_events,
            "rounds": len(engine_rounds),
            "packs": pack_names(),
            "rules": len(rules),
        },
        "engine": spreads(engine_rounds),
        "reference": spreads(reference_rounds),
        "ratio": {kind: ratio(engine_rounds, reference_rounds, kind) for kind in KINDS},
    }


def prose(count: int, seed: int) -> list[str]:
    """Events of exactly 1 KB, made of the sentences of the engine's benchmark."""
    sentences = re.findall(r'^    "(.+)",$', SENTENCES.read_text(), re.MULTILINE)
    if not sentences:
        raise ValueError(f"{SENTENCES.name} holds no sentences")
    dice = random.Random(seed)
    longest = EVENT_BYTES // min(map(len, sentences)) + 1
    return [" ".join(dice.choices(sentences, k=longest))[:EVENT_BYTES] for _ in range(count)]


def with_matches(events: Sequence[str], rules: Sequence[Rule]) -> list[str]:
    """The events, every hundredth with an example of a rule at its end, as in the engine's benchmark."""
    changed = list(events)
    for number, index in enumerate(range(0, len(changed), 100)):
        example = rules[number % len(rules)].matching[0]
        changed[index] = f"{changed[index][: max(EVENT_BYTES - len(example) - 2, 0)]}. {example}"
    return changed


def engine_round(binary: Path, events: int) -> dict[str, Figures]:
    """One round of the engine; microseconds and events per second for each kind of events. Raises EngineError."""
    command = [str(binary), "--packs", ",".join(pack_names()), "--rounds", "1", "--events", str(events)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise EngineError(f"{binary.name} ended with {run.returncode}: {run.stderr.strip()}")
    return read_figures(run.stdout)


def read_figures(output: str) -> dict[str, Figures]:
    """The figures that the example `scoring` prints."""
    figures: dict[str, Figures] = {}
    for kind in KINDS:
        _, _, block = output.partition(f"{kind}: ")
        values = {
            name: float(match[1])
            for name in ("events/s", "p50 ns", "p99 ns")
            if (match := re.search(rf"^\s+{re.escape(name)}\s+([0-9.]+)", block, re.MULTILINE))
        }
        figures[kind] = {
            "events_per_second": values["events/s"],
            "p50_us": values["p50 ns"] / 1000,
            "p99_us": values["p99 ns"] / 1000,
        }
    return figures


def reference_round(reference: Reference, events: Sequence[str]) -> Figures:
    """One round of the reference: every event is scanned and judged once."""
    times = []
    used_before = time.thread_time()
    for event in events:
        start = time.perf_counter()
        reference.judge(reference.scan(event, "request"))
        times.append(time.perf_counter() - start)
    used = time.thread_time() - used_before
    ordered = sorted(times)
    return {
        "events_per_second": len(times) / used,
        "p50_us": ordered[(len(ordered) - 1) // 2] * 1e6,
        "p99_us": ordered[int((len(ordered) - 1) * 0.99)] * 1e6,
    }


def spreads(rounds: Sequence[dict[str, Figures]]) -> dict[str, dict[str, Spread]]:
    """Median, minimum and maximum over the rounds, for each kind of events and each figure."""
    return {kind: {name: spread([r[kind][name] for r in rounds]) for name in rounds[0][kind]} for kind in KINDS}


def ratio(engine: Sequence[dict[str, Figures]], reference: Sequence[dict[str, Figures]], kind: str) -> Spread:
    """The engine's rate over the reference's, each pair from one round."""
    pairs = zip(engine, reference, strict=True)
    return spread(ours[kind]["events_per_second"] / theirs[kind]["events_per_second"] for ours, theirs in pairs)


def spread(values: Iterable[float]) -> Spread:
    """Median, minimum and maximum."""
    ordered = sorted(values)
    return {
        "median": round(statistics.median(ordered), 2),
        "min": round(ordered[0], 2),
        "max": round(ordered[-1], 2),
    }


def show(speed: dict[str, Any]) -> None:
    """Prints what `compare` measured."""
    method = speed["method"]
    print(f"{method['rules']} rules, events of {EVENT_BYTES} bytes, one core, median of {method['rounds']} rounds")
    print(f"{'':12} {'events':14} {'events/s':>12} {'(min to max)':>22} {'p50 us':>9} {'p99 us':>9}")
    for name in ("engine", "reference"):
        for kind in KINDS:
            rate, p50, p99 = (speed[name][kind][key] for key in ("events_per_second", "p50_us", "p99_us"))
            between = f"({rate['min']:,.0f} to {rate['max']:,.0f})"
            times = f"{p50['median']:>9.1f} {p99['median']:>9.1f}"
            print(f"{name:12} {kind:14} {rate['median']:>12,.0f} {between:>22} {times}")
    for kind in KINDS:
        times_faster = speed["ratio"][kind]
        between = f"({times_faster['min']:.1f} to {times_faster['max']:.1f})"
        print(f"{'ratio':12} {kind:14} {times_faster['median']:>12.1f} {between:>22}")

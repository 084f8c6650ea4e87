"""Compares the gateways that translate between an OpenAI client and a provider with Anthropic's API.

    make bench-anthropic                          about eight minutes; writes bench/results/anthropic-upstream.json
    python -m bench.anthropic_upstream --turns 1  prints, and writes nothing

The same worker is also measured without translation, in either dialect. The cost of translation is the difference of
pairs from one turn. The gateway under test has core 0; load generator and upstream share core 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bench import machine, proofgate_worker, scenarios
from bench.load import tools, upstream
from bench.processes import GATEWAY_CORE
from bench.rivals import litellm, portkey, tensorzero
from bench.scenarios import Scenario
from bench.summary import Record, paired, spread
from bench.system import Candidate, System, UnavailableError
from bench.systems import NULL, PRODUCT
from bench.turns import take_turns

RESULT = Path(__file__).parent / "results" / "anthropic-upstream.json"
TURNS = 5
SECONDS = 2
CONNECTIONS = (1, 16, 64)
STREAMS = (100, 1_000)
MESSAGES = "/v1/messages"
MAX_TOKENS = 1_024
Start = Callable[[Path, str], AbstractContextManager[System]]
#: The worker without translation: an OpenAI client and provider, and an Anthropic client and provider.
OPENAI, PASSED = "proofgate-openai", "proofgate-messages"
FIGURES = {
    "unary": ("requests_per_second", "p50_us", "p99_us", "cpu_us_per_request"),
    "streams": ("chunks_per_second", "late_p50_us", "late_p99_us", "cpu_us_per_chunk"),
}


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, help=f"turns (default {TURNS}); with them nothing is written")
    parser.add_argument("--only", help="these systems alone, with commas between")
    options = parser.parse_args()
    built = tools.stream_load()
    record, about = Record(), machine.describe()
    with tempfile.TemporaryDirectory(prefix="proofgate-bench-") as scratch:
        folder = Path(scratch)
        with upstream.run(built, folder, paced=False) as source:
            chosen = [
                candidate
                for candidate in candidates(built)
                if not options.only or candidate.name in options.only.split(",")
            ]
            ready = [candidate for candidate in chosen if _prepare(candidate, record)]
            asked = partial(plan, stream_load=built)
            take_turns(options.turns or TURNS, ready, source.address, folder, asked, record, paced=False)
    result = {"machine": about, "absent": record.absent, **summarise(record)}
    print(json.dumps(result, indent=2))
    if options.turns is None:
        RESULT.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if record.voided else 0


def _prepare(candidate: Candidate, record: Record) -> bool:
    try:
        candidate.prepare()
    except UnavailableError as error:
        record.absent[candidate.name] = str(error)
        print(f"{candidate.name} is left out: {error}", flush=True)
        return False
    return True


def candidates(stream_load: Path) -> list[Candidate]:
    """The compared systems."""
    worker = partial(proofgate_worker.start, change=before_anthropic)
    found = [
        Candidate(NULL, "the upstream, asked directly", lambda: "", partial(_null, stream_load)),
        Candidate(OPENAI, "one worker, in front of OpenAI's", lambda: "", proofgate_worker.start),
        Candidate(PASSED, "one worker, asked in Anthropic's dialect", lambda: "", partial(_in_messages, worker)),
        Candidate(PRODUCT, "one worker, which translates", lambda: "", worker),
        Candidate(
            "tensorzero",
            "observability off, no keys",
            tensorzero.prepare,
            partial(tensorzero.start, provider="anthropic"),
        ),
        Candidate(
            "portkey", "forwarding only", portkey.prepare, partial(portkey.start, provider="anthropic"), slow=True
        ),
        Candidate(
            "litellm",
            "one worker, a master key, no database",
            litellm.prepare,
            partial(litellm.start, provider=litellm.before_anthropic),
            slow=True,
        ),
    ]
    return [replace(candidate, start=partial(_with_a_maximum, candidate.start)) for candidate in found]


def before_anthropic(document: dict[str, Any]) -> None:
    """Configures a worker for a provider with Anthropic's API."""
    document["providers"][0]["type"] = "Anthropic"


@contextmanager
def _with_a_maximum(start: Start, folder: Path, address: str) -> Iterator[System]:
    with start(folder, address) as system:
        yield replace(system, max_tokens=MAX_TOKENS)


@contextmanager
def _null(stream_load: Path, folder: Path, _upstream: str) -> Iterator[System]:
    with upstream.run(stream_load, folder, GATEWAY_CORE, paced=False) as system:
        yield replace(system, path=MESSAGES)


@contextmanager
def _in_messages(start: Start, folder: Path, address: str) -> Iterator[System]:
    with start(folder, address) as system:
        yield replace(system, path=MESSAGES, headers={**system.headers, "anthropic-version": "2023-06-01"})


def plan(candidate: Candidate, stream_load: Path) -> Iterator[Scenario]:
    """Closed loops, then streams. Slow systems get fewer streams."""
    for connections in CONNECTIONS:
        yield Scenario("unary", f"c{connections}", scenarios.closed(connections, scenarios.PROMPT_BYTES, SECONDS))
    for count in STREAMS:
        if count <= 100 or not candidate.slow:
            yield Scenario("streams", f"s{count}", scenarios.streamed(stream_load, count, SECONDS + 1))


def summarise(record: Record) -> dict[str, Any]:
    """All figures of all systems, the ratio of their rates to the product's, and the cost of translation."""
    result: dict[str, Any] = {"voided": record.voided}
    points = dict.fromkeys((sample.group, sample.point) for sample in record.samples if sample.group in FIGURES)
    for group, point in points:
        systems = result.setdefault(group, {}).setdefault(point, {})
        rate, cost = FIGURES[group][0], FIGURES[group][-1]
        product = record.series(group, point, PRODUCT, rate)
        names = dict.fromkeys(
            sample.system for sample in record.samples if (sample.group, sample.point) == (group, point)
        )
        for name in names:
            series = {figure: record.series(group, point, name, figure) for figure in FIGURES[group]}
            systems[name] = {figure: spread(found.values()) for figure, found in series.items()}
            if name != PRODUCT:
                systems[name]["product_rate_to_it"] = paired(product, series[rate], ratio=True)
        costs = {name: record.series(group, point, name, cost) for name in (OPENAI, PASSED, PRODUCT)}
        systems["translation"] = {
            "cpu_us_above_openai": paired(costs[PRODUCT], costs[OPENAI], ratio=False),
            "messages_rate_to_openai": paired(
                record.series(group, point, PASSED, rate), record.series(group, point, OPENAI, rate), ratio=True
            ),
        }
    return result


if __name__ == "__main__":
    sys.exit(main())

"""Measures systems in turns: all of them run, and one at a time is awake and measured for seconds.

The speed of a shared machine changes every second, by up to a factor of two. Therefore compared systems are measured
within seconds of each other, many times, and the result is the median of the pairs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path

from bench import scenarios, visits
from bench.scenarios import Scenario
from bench.summary import Record
from bench.system import Candidate, System

Plan = Callable[[Candidate], Iterator[Scenario]]

#: Seconds of warm-up for just-in-time compilers.
_WARM_UP = 3
#: Number of measurements per turn at points whose figures matter more than others.
_OFTEN = {
    ("closed_loop", "c64"): 3,
    ("prompts", "16KB"): 3,
    ("open_loop", "at_once"): 3,
    ("open_loop", "after_50ms"): 3,
}
#: Seconds for a system to end the remaining streams of its clients and the upstream.
_SETTLE = 1


def take_turns(
    turns: int,
    candidates: list[Candidate],
    upstream: str,
    folder: Path,
    plan: Plan,
    record: Record,
    *,
    paced: bool,
) -> None:
    """Starts all systems and makes every measurement of the plan with each of them, at least `turns` times.

    Those of which the plan asks nothing are not started. A `paced` upstream leaves streams behind, which are given time
    to end.
    """
    kind = "paced" if paced else "at once"
    with ExitStack() as stack:
        running: dict[str, tuple[System, Path]] = {}
        memory: dict[str, float] = {}
        for candidate in candidates:
            if not list(plan(candidate)):
                continue
            own = folder / candidate.name
            own.mkdir()
            print(f"starting {candidate.name}", flush=True)
            try:
                system = stack.enter_context(visits.started(candidate, own, upstream, paced=paced))
                memory[candidate.name] = system.process.resident_megabytes()
                visits.greet(system)
                scenarios.closed(16, scenarios.PROMPT_BYTES, _WARM_UP)(system, own)
            except visits.FAILURES as error:
                record.void(0, candidate.name, f"{kind}/start", str(error)[:500])
                print(f"  did not start: {error}", flush=True)
                continue
            system.process.pause()
            running[candidate.name] = system, own
        points = _points(plan, [candidate for candidate in candidates if candidate.name in running])
        for turn, (point, asked) in product(range(turns), points.items()):
            print(f"{kind}, turn {turn + 1} of {turns}: {'/'.join(point)}", flush=True)
            for number in range(turn, turns * _OFTEN.get(point, 1), turns):
                for name, scenario in visits.rotated(asked, number):
                    system, own = running[name]
                    with system.process.awake():
                        visits.measure(record, number + 1, name, scenario, system, own)
                        time.sleep(_SETTLE if paced else 0)
        for name, (system, _) in running.items():
            visits.note_memory(record, 1, name, "streams" if paced else "requests", memory[name], system)


def _points(plan: Plan, candidates: list[Candidate]) -> dict[tuple[str, str], list[tuple[str, Scenario]]]:
    """The points of the plan, each with its systems by name and their scenarios."""
    points: dict[tuple[str, str], list[tuple[str, Scenario]]] = {}
    for candidate in candidates:
        for scenario in plan(candidate):
            points.setdefault((scenario.group, scenario.point), []).append((candidate.name, scenario))
    return points

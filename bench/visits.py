"""The steps for every system: start, first request, measurements."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from subprocess import SubprocessError
from typing import TypeVar

from bench import machine, request
from bench.cell import Cell, CellError
from bench.load import tools
from bench.load import upstream as upstreams
from bench.processes import LOAD_CORE, StartError
from bench.scenarios import Scenario
from bench.summary import Record, Sample
from bench.system import Candidate, System
from bench.systems import NULL

T = TypeVar("T")

#: The failures of one system that do not end the run.
FAILURES = (StartError, CellError, SubprocessError, OSError)


def rotated(systems: list[T], number: int) -> list[T]:
    """The order of a turn; each turn starts with another system."""
    first = number % max(len(systems), 1)
    return systems[first:] + systems[:first]


@contextmanager
def started(candidate: Candidate, folder: Path, upstream: str, *, paced: bool) -> Iterator[System]:
    """Runs a system before an upstream that answers at once, or one that is `paced`. Raises StartError."""
    if candidate.name == NULL and paced:
        # Asked directly, the upstream tells how late its own tokens are. It stands where it stands in every other case.
        with upstreams.run(tools.stream_load(), folder, LOAD_CORE, paced=True) as system:
            yield system
    else:
        with candidate.start(folder, upstream) as system:
            yield system


def greet(system: System) -> None:
    """Sends one request before any is counted. Raises StartError if its answer is not a completion."""
    connection = http.client.HTTPConnection(system.address, timeout=60)
    try:
        headers = {**system.headers, "Content-Type": "application/json"}
        body = request.chat("Good morning.", system.model, max_tokens=system.max_tokens)
        connection.request("POST", system.path, body, headers)
        answer = connection.getresponse()
        told = answer.read()
    except http.client.HTTPException as error:
        raise StartError(f"no answer to the first request: {error!r}") from error
    finally:
        connection.close()
    if answer.status != 200 or b"quick brown fox" not in told:
        raise StartError(f"the first request was answered with {answer.status}: {told[:200]!r}")


def measure(record: Record, number: int, name: str, scenario: Scenario, system: System, folder: Path) -> None:
    """Makes one measurement, which belongs to a turn, and keeps it, or why there is none."""
    try:
        with machine.CoreMeter(LOAD_CORE) as load_core:
            cell = scenario.measure(system, folder)
        busy = {"load_core_busy_share": load_core.busy_share}
        cell = replace(cell, figures={**cell.figures, **busy})
    except FAILURES as error:
        cell = Cell({}, 1, f"{type(error).__name__}: {error}"[:300])
    record.add(Sample(number, scenario.group, scenario.point, name, cell))
    if cell.failures:
        print(f"  {scenario.group}/{scenario.point} of {name} is void: {cell.reason}", flush=True)


def note_memory(record: Record, number: int, name: str, point: str, before: float, system: System) -> None:
    """Keeps the resident memory of a system, in megabytes, before it was asked and now."""
    cell = Cell({"start_mb": before, "after_mb": system.process.resident_megabytes()})
    record.add(Sample(number, "memory", point, name, cell))

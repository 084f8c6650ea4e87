"""Stage profiling: a histogram for every stage of the hot path, recorded only while it is enabled.

Profiling is on while the switch is on or a `profile_stages` block is open. The worker counts open blocks, so
blocks may nest and overlap.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from proofgate import _core

P = ParamSpec("P")
T = TypeVar("T")

PROFILE_VARIABLE = "PROOFGATE_PROFILE_STAGES"
_LAG_SECONDS = 0.25
_TRUE_VALUES = frozenset({"1", "true", "yes", "on"})


class NoWorkerError(RuntimeError):
    """No worker runs in this process, so there is nothing to profile."""

    def __init__(self) -> None:
        super().__init__("no worker runs in this process: there is nothing to profile")


@dataclass
class _AttachedWorker:
    worker: _core.Worker
    is_enabled: bool


_attached: _AttachedWorker | None = None


def is_enabled() -> bool:
    """Whether stages are measured now. False without a worker."""
    return _attached is not None and _attached.worker.profiling()


def set_enabled(enabled: bool) -> bool:
    """Sets the switch and returns its previous state. Raises NoWorkerError."""
    attached = _require_worker()
    attached.is_enabled = enabled
    return attached.worker.set_profiling(enabled)


@contextlib.contextmanager
def profile_stages() -> Iterator[None]:
    """Measures stages during the block, regardless of the switch. Raises NoWorkerError."""
    worker = _require_worker().worker
    worker.enter_profiling()
    try:
        yield
    finally:
        worker.exit_profiling()


async def run_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs a function like `asyncio.to_thread`, and records how long the caller waits for the loop after the
    thread is done."""
    done = 0.0

    def run() -> T:
        nonlocal done
        try:
            return function(*args, **kwargs)
        finally:
            done = time.monotonic()

    try:
        return await asyncio.to_thread(run)
    finally:
        _record("python_resume", done)


async def watch_loop() -> None:
    """Records how late the event loop is, a few times a second while profiling is on."""
    while True:
        due = time.monotonic() + _LAG_SECONDS
        await asyncio.sleep(_LAG_SECONDS)
        _record("loop_lag", due)


def is_switched_on() -> bool:
    """Whether the switch itself is on; open blocks do not count. Raises NoWorkerError."""
    return _require_worker().is_enabled


def attach(worker: _core.Worker, enabled: bool) -> None:
    """Registers the worker of this process, with the initial state of the switch."""
    global _attached
    _attached = _AttachedWorker(worker, enabled)
    worker.set_profiling(enabled)


def detach() -> None:
    """Unregisters the worker of this process."""
    global _attached
    _attached = None


def is_requested(environment: Mapping[str, str]) -> bool:
    """Whether PROOFGATE_PROFILE_STAGES enables profiling: 1, true, yes or on, case-insensitive, without
    surrounding spaces."""
    return environment.get(PROFILE_VARIABLE, "").strip().lower() in _TRUE_VALUES


def _record(name: str, since: float) -> None:
    if since and _attached is not None:
        _attached.worker.record_interval(name, max(0.0, time.monotonic() - since))


def _require_worker() -> _AttachedWorker:
    if _attached is None:
        raise NoWorkerError
    return _attached

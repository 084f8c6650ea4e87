"""Walks: a test does only what a page says, within the time that people have for it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MINUTES = 10


@contextmanager
def walk(record: Callable[[str, object], None]) -> Iterator[None]:
    """Records as `walk_seconds` how long its body took, and ends it after ten minutes.

    `record` is pytest's `record_property`. For the main thread only. Raises TimeoutError.
    """

    def give_up(*_: object) -> None:
        raise TimeoutError(f"the walk is not done after {MINUTES} minutes")

    began = time.monotonic()
    former = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(MINUTES * 60)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)
        record("walk_seconds", round(time.monotonic() - began, 1))

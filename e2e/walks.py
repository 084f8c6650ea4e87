"""Walks: a test follows a page's instructions exactly, within the time limit for people."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MINUTES = 10


@contextmanager
def walk(record: Callable[[str, object], None]) -> Iterator[None]:
    """Records the duration of its block as `walk_seconds`, and aborts the block after ten minutes.

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

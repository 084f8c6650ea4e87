"""Periodic fetching of a worker's data, each in a separate task on the event loop. Failures delay the next
attempt."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, ClassVar

log = logging.getLogger("proofgate")

#: Fraction by which the delays of workers differ, so that workers do not send requests at the same time.
JITTER = 0.1


def backoff(failures: int, first: float, most: float, spread: float) -> float:
    """Returns the seconds until the next attempt after a number of failures. `spread` is from -1 to 1."""
    # The exponent is limited, because a float is.
    delay = min(first * 2.0 ** min(failures - 1, 16), most)
    return delay * (1 + JITTER * abs(spread))


class Refresher(ABC):
    """Periodically starts due fetches, and tracks running ones."""

    #: Name of the refreshed data in log messages about failures.
    description: ClassVar[str]
    tick_seconds: ClassVar[float]
    #: Maximum seconds of the first fetch of all sources, before the worker is ready.
    first_round_seconds: ClassVar[float]

    def __init__(self) -> None:
        self._fetching: set[asyncio.Task[None]] = set()

    @abstractmethod
    def tick(self) -> None:
        """Starts all due fetches."""

    async def run(self) -> None:
        """Starts due fetches in an endless loop."""
        while True:
            try:
                self.tick()
            except Exception:
                log.exception("%s cannot be synced now", self.description)
            await asyncio.sleep(self.tick_seconds)

    async def run_first_round(self) -> None:
        """Fetches each source once, with a time limit, before the worker reports that it is ready."""
        self.tick()
        await self.wait_until_idle(self.first_round_seconds)

    async def wait_until_idle(self, seconds: float) -> None:
        """Waits until all running fetches have succeeded or failed, at most `seconds`."""
        if self._fetching:
            await asyncio.wait(self._fetching, timeout=seconds)

    def _start(self, fetching: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(fetching)
        self._fetching.add(task)
        task.add_done_callback(self._fetching.discard)

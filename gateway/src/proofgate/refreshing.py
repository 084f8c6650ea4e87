"""What a worker fetches again and again, each in a task of its own on the event loop; failures put it off."""

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
    """Seconds until the next attempt after so many failures; `spread` is from -1 to 1."""
    # The exponent is bounded, because a float is.
    delay = min(first * 2.0 ** min(failures - 1, 16), most)
    return delay * (1 + JITTER * abs(spread))


class Refresher(ABC):
    """Begins whatever is due, for ever, and knows what is under way."""

    #: Name of the refreshed data in log messages about failures.
    description: ClassVar[str]
    tick_seconds: ClassVar[float]
    #: Maximum seconds of the first fetch of all sources, before the worker is ready.
    first_round_seconds: ClassVar[float]

    def __init__(self) -> None:
        self._fetching: set[asyncio.Task[None]] = set()

    @abstractmethod
    def tick(self) -> None:
        """Begins to fetch whatever is due now."""

    async def run(self) -> None:
        """Fetches what is due, for ever."""
        while True:
            try:
                self.tick()
            except Exception:
                log.exception("%s cannot be synced now", self.description)
            await asyncio.sleep(self.tick_seconds)

    async def run_first_round(self) -> None:
        """Gives each one chance before the worker calls itself ready, and none of them more time."""
        self.tick()
        await self.wait_until_idle(self.first_round_seconds)

    async def wait_until_idle(self, seconds: float) -> None:
        """Waits until what is being fetched has come or failed, at most so long."""
        if self._fetching:
            await asyncio.wait(self._fetching, timeout=seconds)

    def _start(self, fetching: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(fetching)
        self._fetching.add(task)
        task.add_done_callback(self._fetching.discard)

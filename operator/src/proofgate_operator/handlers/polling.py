"""Periodic polling that continues after failures."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

_log = logging.getLogger(__name__)


async def poll_forever(whom: str, seconds: float, ask: Callable[[], Awaitable[None]]) -> None:
    """Call `ask` every `seconds`. A failure is logged with `whom`, the name of the polled process."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await ask()
        except Exception as error:
            # Any exception: the next call may succeed.
            _log.warning("cannot query %s: %s", whom, type(error).__name__)

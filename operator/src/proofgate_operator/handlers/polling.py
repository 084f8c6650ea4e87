"""What is asked again and again, whatever came of it the last time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

_log = logging.getLogger(__name__)


async def poll_forever(whom: str, seconds: float, ask: Callable[[], Awaitable[None]]) -> None:
    """Call `ask` every so many seconds. A failure is logged with `whom` it asks."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await ask()
        except Exception as error:
            # Whatever it is, the next time may find the world better.
            _log.warning("cannot query %s: %s", whom, type(error).__name__)

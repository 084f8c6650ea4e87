"""Calls in daemon threads, which do not delay the end of the process.

The threads of a pool are joined when the process ends, so a name server that does not answer would delay the
exit.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def run_in_daemon_thread(call: Callable[[], T], name: str) -> T:
    """Runs a call in a daemon thread with this name and returns its result."""
    outcome: concurrent.futures.Future[T] = concurrent.futures.Future()
    outcome.set_running_or_notify_cancel()

    def work() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return await asyncio.wrap_future(outcome)

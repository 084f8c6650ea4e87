"""Calls in threads that nobody waits for when the process ends.

A pool's threads are joined at the end, and a name server that does not answer would hold up the exit.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def run_in_daemon_thread(call: Callable[[], T], name: str) -> T:
    """The result of a call in a thread of this name."""
    outcome: concurrent.futures.Future[T] = concurrent.futures.Future()
    outcome.set_running_or_notify_cancel()

    def work() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return await asyncio.wrap_future(outcome)

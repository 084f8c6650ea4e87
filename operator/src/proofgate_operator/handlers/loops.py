"""The loops that run, one for each gateway. Who tells of gateways may tell twice, late, or begin anew."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from proofgate_operator.handlers.execution import Logger
from proofgate_operator.handlers.loop import Loop

if TYPE_CHECKING:
    from proofgate_operator.handlers.operator import Operator

#: A reconcile that is under way gets so long to end when its loop is ended.
_END_SECONDS = 5.0


class Loops:
    """One task for each gateway, by its uid."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[asyncio.Task[None], asyncio.Event]] = {}

    def begin(self, operator: Operator, namespace: str, name: str, uid: str, logger: Logger) -> None:
        """Have the gateway reconciled from now on, unless it already is."""
        if uid in self._running and not self._running[uid][0].done():
            return
        stopped = asyncio.Event()
        running = self._run(Loop(operator, namespace, name, uid, logger), f"{namespace}/{name}", stopped)
        self._running[uid] = asyncio.create_task(running, name=f"{namespace}/{name}"), stopped

    def end(self, uid: str) -> None:
        """Have a gateway that is gone reconciled no more."""
        if uid in self._running:
            task, stopped = self._running.pop(uid)
            stopped.set()
            task.cancel()

    async def stop(self) -> None:
        """End all of them, and wait until they have ended."""
        tasks = [task for task, _ in self._running.values()]
        for uid in list(self._running):
            self.end(uid)
        if tasks:
            await asyncio.wait(tasks, timeout=_END_SECONDS)

    async def _run(self, loop: Loop, name: str, stopped: asyncio.Event) -> None:
        try:
            # A reconcile may swallow the cancellation.
            await loop.run(stopped.is_set)
        finally:
            # What is kept by name belongs to the one that was made anew under it, if there is one.
            if all(task.get_name() != name for task, _ in self._running.values()):
                loop.forget()

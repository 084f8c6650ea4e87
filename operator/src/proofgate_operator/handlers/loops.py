"""The loops that run, one for each gateway. Who tells of gateways may tell twice, late, or begin anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

#: A reconcile that is under way gets so long to end when its loop is ended.
_STOP_TIMEOUT_SECONDS = 5.0


class GatewayRunner(Protocol):
    """What runs for one gateway: see `loop.GatewayLoop`."""

    async def run(self, stopped: Callable[[], bool]) -> None:
        """Run until cancelled, or until `stopped`."""

    def clean_up(self) -> None:
        """Leave nothing behind of a gateway that is gone."""


class GatewayLoops:
    """One task for each gateway, by its uid."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[asyncio.Task[None], asyncio.Event]] = {}

    def start(self, namespace: str, name: str, uid: str, loop: GatewayRunner) -> None:
        """Have the gateway reconciled by this loop from now on, unless it already has one."""
        if uid in self._running and not self._running[uid][0].done():
            return
        stopped = asyncio.Event()
        running = self._run(loop, f"{namespace}/{name}", stopped)
        self._running[uid] = asyncio.create_task(running, name=f"{namespace}/{name}"), stopped

    def stop_gateway(self, uid: str) -> None:
        """Have a gateway that is gone reconciled no more."""
        if uid in self._running:
            task, stopped = self._running.pop(uid)
            stopped.set()
            task.cancel()

    async def stop_all(self) -> None:
        """End all of them, and wait until they have ended."""
        tasks = [task for task, _ in self._running.values()]
        for uid in list(self._running):
            self.stop_gateway(uid)
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_TIMEOUT_SECONDS)

    async def _run(self, loop: GatewayRunner, name: str, stopped: asyncio.Event) -> None:
        try:
            # A reconcile may swallow the cancellation.
            await loop.run(stopped.is_set)
        finally:
            # What is kept by name belongs to the one that was made anew under it, if there is one.
            if all(task.get_name() != name for task, _ in self._running.values()):
                loop.clean_up()

"""The running loops, one per gateway. Events about gateways may arrive twice, late, or again after a
restart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

#: The time in which a running reconcile may finish after its loop was stopped.
_STOP_TIMEOUT_SECONDS = 5.0


class GatewayRunner(Protocol):
    """The task of one gateway: see `loop.GatewayLoop`."""

    async def run(self, stopped: Callable[[], bool]) -> None:
        """Run until cancelled, or until `stopped` returns True."""

    def clean_up(self) -> None:
        """Drop all records of a deleted gateway."""


class GatewayLoops:
    """One task per gateway, keyed by the gateway's uid."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[asyncio.Task[None], asyncio.Event]] = {}

    def start(self, namespace: str, name: str, uid: str, loop: GatewayRunner) -> None:
        """Start this loop for the gateway, unless the gateway already has one."""
        if uid in self._running and not self._running[uid][0].done():
            return
        stopped = asyncio.Event()
        running = self._run(loop, f"{namespace}/{name}", stopped)
        self._running[uid] = asyncio.create_task(running, name=f"{namespace}/{name}"), stopped

    def stop_gateway(self, uid: str) -> None:
        """Stop the loop of a deleted gateway."""
        if uid in self._running:
            task, stopped = self._running.pop(uid)
            stopped.set()
            task.cancel()

    async def stop_all(self) -> None:
        """Stop all loops, and wait until they have ended."""
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
            # Records are kept by name. If a new gateway of that name exists, they belong to the new gateway.
            if all(task.get_name() != name for task, _ in self._running.values()):
                loop.clean_up()

"""Requeues: an event of a gateway or of its objects ends the wait of that gateway's loop."""

import asyncio
import contextlib


class Requeues:
    """One flag per gateway. Several calls before a reconcile count as one, and a call never fails."""

    def __init__(self) -> None:
        self._flags: dict[tuple[str, str], asyncio.Event] = {}

    def _flag(self, namespace: str, name: str) -> asyncio.Event:
        return self._flags.setdefault((namespace, name), asyncio.Event())

    def requeue(self, namespace: str, name: str) -> None:
        """Request a reconcile of the gateway soon, if its loop runs."""
        flag = self._flags.get((namespace, name))
        if flag is not None:
            flag.set()

    def clear(self, namespace: str, name: str) -> None:
        """Clear the flag before a reconcile, so that an event during the reconcile is not missed."""
        self._flag(namespace, name).clear()

    async def wait(self, namespace: str, name: str, seconds: float) -> None:
        """Wait for a requeue, for at most `seconds`."""
        # Not asyncio.wait_for: before Python 3.12, it loses a cancellation that arrives together with the
        # event.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._flag(namespace, name).wait()

    def remove(self, namespace: str, name: str) -> None:
        """Drop the flag of a deleted gateway."""
        self._flags.pop((namespace, name), None)

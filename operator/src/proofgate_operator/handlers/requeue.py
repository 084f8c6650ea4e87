"""Requeues: an event of a gateway or of one of its objects ends the wait of that gateway's loop."""

import asyncio
import contextlib


class Requeues:
    """One flag per gateway. Setting it is cheap and never fails; several calls before a reconcile
    count as one."""

    def __init__(self) -> None:
        self._flags: dict[tuple[str, str], asyncio.Event] = {}

    def _flag(self, namespace: str, name: str) -> asyncio.Event:
        return self._flags.setdefault((namespace, name), asyncio.Event())

    def requeue(self, namespace: str, name: str) -> None:
        """Have the gateway reconciled soon, if its loop runs."""
        flag = self._flags.get((namespace, name))
        if flag is not None:
            flag.set()

    def clear(self, namespace: str, name: str) -> None:
        """Lower the flag before a reconcile, so that whatever happens during it is not missed."""
        self._flag(namespace, name).clear()

    async def wait(self, namespace: str, name: str, seconds: float) -> None:
        """Wait until it is requeued, `seconds` at most."""
        # Not asyncio.wait_for: before Python 3.12, it forgets a cancellation that comes with the call.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._flag(namespace, name).wait()

    def remove(self, namespace: str, name: str) -> None:
        """Drop the flag of a gateway that is gone."""
        self._flags.pop((namespace, name), None)

"""Watches the files, syncs HAProxy with them, and counts the results."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from proofgate.haproxy_sidecar.runtime_api import UnreachableError
from proofgate.haproxy_sidecar.target import RefusedError, SyncTarget

log = logging.getLogger("proofgate.haproxy-sidecar")

POLL_SECONDS = 0.5


@dataclass
class TargetState:
    """The state of one target in HAProxy.

    `last_attempted` is the content that was last sent to HAProxy, `last_applied` the last content that it
    accepted, `last_error` the error since then, None without one. `next_check` is a time of the loop's clock,
    in seconds.
    """

    target: SyncTarget
    last_attempted: Any = None
    last_applied: Any = None
    reachable: bool = False
    next_check: float = 0
    last_error: str | None = None
    updates: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    last_success: float = 0

    @property
    def in_sync(self) -> bool:
        """Whether HAProxy has the content of the last valid file.

        A refused file does not change this: every replica reads the same file, so otherwise all of them would
        stop serving.
        """
        return self.last_applied is not None and self.reachable

    @property
    def up_to_date(self) -> bool:
        """Whether HAProxy has the whole content of the newest file, and none of it was refused."""
        return self.in_sync and self.last_error is None


class SyncLoop:
    """A loop that syncs HAProxy with every target."""

    def __init__(
        self,
        targets: Sequence[SyncTarget],
        clock: Callable[[], float] = time.monotonic,
        life: Callable[[], object] = lambda: None,
    ) -> None:
        """`life` returns a value that differs after each start of HAProxy, so that a new process is checked
        immediately."""
        self.standings = tuple(TargetState(target) for target in targets)
        self._clock = clock
        self._life = life
        self._seen_life: object = None

    async def run(self) -> None:
        """Syncs in an endless loop."""
        while True:
            await self.sync_once()
            await asyncio.sleep(POLL_SECONDS)

    async def sync_once(self) -> None:
        """Syncs every target once."""
        life = self._life()
        if life != self._seen_life:
            self._seen_life = life
            for standing in self.standings:
                standing.next_check = 0
        for standing in self.standings:
            try:
                await self._sync(standing)
            except Exception:
                log.exception("%s cannot be synced", standing.target.name)
                standing.failures["internal"] += 1

    def out_of_sync(self) -> list[str]:
        """The names of the targets with which HAProxy is out of sync."""
        return [standing.target.name for standing in self.standings if not standing.in_sync]

    async def _sync(self, standing: TargetState) -> None:
        try:
            content = await asyncio.to_thread(standing.target.read)
        except RefusedError as error:
            self._record_failure(standing, error.code, str(error))
            return
        now = self._clock()
        if content is not None and (content != standing.last_attempted or now >= standing.next_check):
            standing.last_attempted, standing.next_check = content, now + standing.target.check_seconds
            await self._apply(standing, content)
        elif standing.in_sync:
            self._record_content_errors(standing)

    async def _apply(self, standing: TargetState, content: Any) -> None:
        try:
            change = await standing.target.reconcile(content)
        except UnreachableError as error:
            standing.reachable, standing.next_check = False, self._clock()
            self._record_failure(standing, error.code, str(error))
            return
        except RefusedError as error:
            standing.reachable = True
            if content == standing.last_applied:
                standing.last_applied = None
            self._record_failure(standing, error.code, str(error))
            return
        standing.last_applied, standing.reachable = content, True
        standing.last_success = time.time()
        if not self._record_content_errors(standing):
            standing.last_error = None
        if change is not None:
            standing.updates += 1
            log.info("%s: %s", standing.target.name, change)

    def _record_content_errors(self, standing: TargetState) -> bool:
        """Whether a part of the content cannot be used. Logs the error."""
        complaints = standing.target.errors()
        if complaints:
            self._record_failure(standing, RefusedError.code, "; ".join(complaints))
        return bool(complaints)

    def _record_failure(self, standing: TargetState, code: str, message: str) -> None:
        # A lasting error is counted and logged once.
        if message != standing.last_error:
            standing.failures[code] += 1
            # Both containers start at the same time, so it is no error that HAProxy is not running yet.
            starting = standing.last_applied is None and code == UnreachableError.code
            log.log(logging.INFO if starting else logging.ERROR, "%s: %s", standing.target.name, message)
        standing.last_error = message

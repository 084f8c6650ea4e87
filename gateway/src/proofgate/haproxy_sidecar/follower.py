"""Follows the files, and keeps count of what became of each."""

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
    """How HAProxy stands to one target.

    `tried` is the content that was last brought to it, `held` the last that it took on, `trouble` what went
    wrong since, `next_check` a time of the follower's clock, in seconds.
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

        A file that is refused leaves that as it is: every replica reads the same one, and all of them
        together would stop to serve.
        """
        return self.last_applied is not None and self.reachable

    @property
    def up_to_date(self) -> bool:
        """Whether HAProxy has all of the newest file: nothing of it is refused."""
        return self.in_sync and self.last_error is None


class SyncLoop:
    """Brings HAProxy in step with every target, again and again."""

    def __init__(
        self,
        targets: Sequence[SyncTarget],
        clock: Callable[[], float] = time.monotonic,
        life: Callable[[], object] = lambda: None,
    ) -> None:
        """`life` tells one start of HAProxy from the next: what a new one holds is asked for at once."""
        self.standings = tuple(TargetState(target) for target in targets)
        self._clock = clock
        self._life = life
        self._seen_life: object = None

    async def run(self) -> None:
        """Follows for ever."""
        while True:
            await self.sync_once()
            await asyncio.sleep(POLL_SECONDS)

    async def sync_once(self) -> None:
        """Looks once at every target."""
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
        """The names of the targets that HAProxy is not in step with."""
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
        """Whether a part of the content cannot be used; that is told."""
        complaints = standing.target.errors()
        if complaints:
            self._record_failure(standing, RefusedError.code, "; ".join(complaints))
        return bool(complaints)

    def _record_failure(self, standing: TargetState, code: str, message: str) -> None:
        # What lasts is counted and said once.
        if message != standing.last_error:
            standing.failures[code] += 1
            # Both containers start at once: that HAProxy is not there yet is no error.
            starting = standing.last_applied is None and code == UnreachableError.code
            log.log(logging.INFO if starting else logging.ERROR, "%s: %s", standing.target.name, message)
        standing.last_error = message

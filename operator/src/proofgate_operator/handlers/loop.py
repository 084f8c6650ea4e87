"""The loop of one gateway: reconcile, report, and wait for an event or a timeout.

The loop is level-triggered: it does not matter which event woke it. While no known object of a settled
gateway changes its version, a reconcile sends no request to the API server.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable

from proofgate_operator import metrics
from proofgate_operator.api import KIND
from proofgate_operator.handlers.execution import Logger
from proofgate_operator.handlers.operator import Operator
from proofgate_operator.handlers.reconcile import ReconcileResult, reconcile, report_other_release
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.kube.store import VersionMark

#: Time in which a burst of events becomes one reconcile. It also lets the kubelet receive what was just
#: written.
_DEBOUNCE_SECONDS = 0.1
#: Time between two reconciles while workers leave one after another.
_STEP_SECONDS = 1.0
_FIRST_BACKOFF_SECONDS = 1.0
_MAX_BACKOFF_SECONDS = 15.0


class GatewayLoop:
    """The reconcile loop of one gateway."""

    def __init__(self, operator: Operator, namespace: str, name: str, uid: str, logger: Logger) -> None:
        self._operator = operator
        self._namespace = namespace
        self._name = name
        self._uid = uid
        self._logger = logger
        self._failures = 0
        self._reconciles_in_motion = 0
        self._rest: VersionMark | None = None
        self._rested_at = 0.0
        #: The next time at which the status changes by itself, by the same clock as `_rested_at`.
        self._due = math.inf
        self._holder: str | None = None

    async def run(self, stopped: Callable[[], bool]) -> None:
        """Reconcile repeatedly until cancelled.

        `stopped` is checked too, because code that a reconcile calls may swallow the cancellation.
        """
        requeues = self._operator.requeues
        while not stopped():
            await asyncio.sleep(_DEBOUNCE_SECONDS)
            requeues.clear(self._namespace, self._name)
            pause = await self.reconcile()
            self._operator.heartbeat.beat(self._uid, pause)
            if not stopped():
                await requeues.wait(self._namespace, self._name, pause)

    def clean_up(self) -> None:
        """Drop all records of a deleted gateway."""
        self._operator.requeues.remove(self._namespace, self._name)
        self._operator.secret_references.remove_gateway(self._namespace, self._name)
        self._operator.worker_reports.remove_gateway(self._namespace, self._name)
        self._operator.apply_history.remove_gateway(self._namespace, self._name)
        self._operator.attachments.remove_gateway(self._namespace, self._name)
        metrics.remove_gateway(self._namespace, self._name)

    async def reconcile(self) -> float:
        """Reconcile once, unless nothing is known to have changed; return the seconds until the next
        reconcile."""
        resync = self._operator.settings.resync_seconds
        # Spread the reconciles of gateways that started together.
        pause = resync * random.uniform(0.8, 1.2)
        if self._rest is not None:
            rest_left = min(self._rested_at + 0.8 * resync, self._due) - time.monotonic()
            if rest_left > 0 and self._current_mark() == self._rest:
                return max(rest_left, _DEBOUNCE_SECONDS)
        self._rest = None
        try:
            async with self._operator.reconcile_semaphore:
                outcome = await self._reconcile()
        except ApiError as error:
            return self._handle_failure(error, error.retry_after or 0.0)
        except Exception as error:
            # Any exception: the next reconcile may succeed, so log it and continue.
            return self._handle_failure(error, 0.0)
        metrics.RECONCILES.labels("failed" if outcome.failed else "done").inc()
        self._failures = self._failures + 1 if outcome.failed else 0
        if outcome.failed:
            return self._back_off()
        if outcome.changed:
            # Reconcile again after a write: other objects need the generated Secrets.
            self._reconciles_in_motion = 0
            return 0.0
        if outcome.time_driven:
            self._reconciles_in_motion = 0
            return _STEP_SECONDS
        if outcome.settled or not outcome.exists:
            self._reconciles_in_motion = 0
            return min(pause, max(outcome.due_in, _DEBOUNCE_SECONDS))
        self._reconciles_in_motion += 1
        # No event reports the deletion of a foreign object or the passing of a deadline.
        recheck = self._operator.settings.recheck_seconds
        return min(
            recheck * max(1, self._reconciles_in_motion // 4), max(recheck, _MAX_BACKOFF_SECONDS), pause
        )

    async def _reconcile(self) -> ReconcileResult:
        operator = self._operator
        holder = await operator.claims.other_holder(self._namespace)
        if holder is not None:
            return await self._yield_to(holder)
        self._holder = None
        # Taken before the reconcile: a change during it leads to another reconcile.
        before = self._current_mark()
        outcome = await reconcile(
            operator.client,
            self._namespace,
            self._name,
            self._uid,
            operator.settings.defaults,
            self._logger,
            operator.worker_reports,
            operator.apply_history,
            self._failures,
            operator.attachments,
        )
        named = operator.secret_references.secrets_of(self._namespace, self._name)
        operator.secret_references.record(self._namespace, self._name, outcome.secrets)
        if outcome.settled and not outcome.changed and named == outcome.secrets:
            self._rest, self._rested_at = before, time.monotonic()
            self._due = self._rested_at + outcome.due_in
        return outcome

    async def _yield_to(self, holder: str) -> ReconcileResult:
        """Leave the gateway to another release of the operator, and create one Event on the gateway about
        it."""
        if self._holder != holder:
            self._holder = holder
            client = self._operator.client
            live = client.store.get(KIND, self._namespace, self._name)
            if live is not None:
                await report_other_release(client, live, self._operator.settings.release, holder)
        return ReconcileResult(exists=True)

    def _current_mark(self) -> VersionMark:
        named = self._operator.secret_references.secrets_of(self._namespace, self._name)
        workers = self._operator.worker_reports
        audit = workers.audits.change_count(self._namespace, self._name)
        answers = workers.request_probes.change_count(self._namespace, self._name)
        mark = self._operator.client.store.version_mark(self._namespace, self._name, named)
        mark = (*mark, ("Answers", "", str(answers)))
        return (*mark, ("Auditor", "", str(audit))) if audit else mark

    def _handle_failure(self, error: Exception, asked: float) -> float:
        self._failures += 1
        metrics.RECONCILES.labels("failed").inc()
        told = "reconcile failed (%d in a row): %s: %s"
        self._logger.warning(told, self._failures, type(error).__name__, error)
        return max(self._back_off(), asked)

    def _back_off(self) -> float:
        pause = min(_FIRST_BACKOFF_SECONDS * (1 << min(self._failures - 1, 8)), _MAX_BACKOFF_SECONDS)
        return pause * random.uniform(1, 1.2)

"""The loop of one gateway: look, write, report, sleep until something happens.

It is level-triggered: what woke it does not matter. It never ends while its gateway exists, because kopf does
not start a daemon that ended again before the operator restarts.
"""

import asyncio
import random
from typing import Any

import kopf

from proofgate_operator import metrics
from proofgate_operator.api import GROUP, PLURAL, VERSION
from proofgate_operator.handlers.operator import Operator
from proofgate_operator.handlers.reconcile import Outcome, reconcile

_GATHER_SECONDS = 0.1
_FIRST_BACKOFF_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 15.0


def _pause(operator: Operator, outcome: Outcome | None, failures: int) -> float:
    """Return how long the loop may sleep if nothing wakes it."""
    settings = operator.settings
    if outcome is None or outcome.failed:
        return min(_FIRST_BACKOFF_SECONDS * (1 << min(failures, 8)), _LONGEST_BACKOFF_SECONDS)
    if not outcome.config_valid:
        return settings.recheck_seconds
    # Many gateways that started together shall not stay together.
    return settings.resync_seconds * random.uniform(0.8, 1.2)


@kopf.daemon(GROUP, VERSION, PLURAL, cancellation_backoff=0.1, cancellation_timeout=5)
async def keep_reconciling(
    *,
    stopped: kopf.DaemonStopped,
    namespace: str | None,
    name: str | None,
    uid: str | None,
    logger: kopf.Logger,
    memo: Any,
    **_: Any,
) -> None:
    """Look at one gateway again and again."""
    operator: Operator = memo.operator
    assert namespace and name and uid
    failures = 0
    try:
        while not stopped:
            # Bursts of events become one look; and what is written now, the kubelet hears of as well.
            await asyncio.sleep(_GATHER_SECONDS)
            operator.wakes.begin(namespace, name)
            outcome = None
            try:
                outcome = await reconcile(
                    operator.client, namespace, name, operator.settings.defaults, logger
                )
                operator.readers.note(namespace, name, outcome.secrets)
                metrics.RECONCILES.labels("failed" if outcome.failed else "done").inc()
                failures = failures + 1 if outcome.failed else 0
            except asyncio.CancelledError:
                raise
            except Exception as error:
                # Whatever it is, the next look may find the world better: say so and stay.
                failures += 1
                metrics.RECONCILES.labels("failed").inc()
                logger.warning("look failed (%d in a row): %s: %s", failures, type(error).__name__, error)
            operator.pulse.beat(uid)
            if outcome and outcome.wrote and not outcome.failed:
                # What was written is looked at once more: generated Secrets are needed by the rest.
                operator.wakes.wake(namespace, name)
            await operator.wakes.sleep(namespace, name, _pause(operator, outcome, failures))
    finally:
        operator.wakes.forget(namespace, name)
        operator.readers.forget(namespace, name)

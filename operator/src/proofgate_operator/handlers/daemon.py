"""What kopf is for: it starts a loop for every gateway, ends it, and keeps the finalizer meanwhile.

The loop never ends while its gateway exists, because kopf does not start a daemon that ended again before the
operator restarts.
"""

from typing import Any

import kopf

from proofgate_operator.api import GROUP, PLURAL, VERSION
from proofgate_operator.handlers.loop import Loop
from proofgate_operator.handlers.operator import Operator


@kopf.daemon(GROUP, VERSION, PLURAL, cancellation_backoff=0.1, cancellation_timeout=5)
async def keep_reconciling(
    *,
    namespace: str | None,
    name: str | None,
    uid: str | None,
    stopped: kopf.DaemonStopped,
    logger: kopf.Logger,
    memo: Any,
    **_: Any,
) -> None:
    """Look at one gateway until kopf cancels it."""
    operator: Operator = memo.operator
    assert namespace and name and uid
    loop = Loop(operator, namespace, name, uid, logger)
    try:
        await loop.run(lambda: bool(stopped))
    finally:
        loop.forget()

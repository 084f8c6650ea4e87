"""What kopf is for: it tells which gateways there are, and each has a loop as long as it exists.

An event handler needs no finalizer, as a daemon would. So a gateway goes by garbage collection whether an
operator is there or not, and its namespace with it, also when the operator lives in it.
"""

import asyncio
from typing import Any

import kopf

from proofgate_operator.api import GROUP, PLURAL, VERSION
from proofgate_operator.handlers.loop import GatewayLoop
from proofgate_operator.handlers.operator import Operator


@kopf.on.event(GROUP, VERSION, PLURAL)
async def handle_gateway_event(
    *,
    type: str | None,
    namespace: str | None,
    name: str | None,
    uid: str | None,
    logger: kopf.Logger,
    memo: Any,
    **_: Any,
) -> None:
    """Begin the loop of a gateway that is there, end that of one that is gone."""
    operator: Operator = memo.operator
    home: asyncio.AbstractEventLoop = memo.home
    assert namespace and name and uid
    if type == "DELETED":
        home.call_soon_threadsafe(operator.loops.stop_gateway, uid)
    else:
        loop = GatewayLoop(operator, namespace, name, uid, logger)
        home.call_soon_threadsafe(operator.loops.start, namespace, name, uid, loop)

"""Handles kopf's events of gateways: each gateway has a loop as long as it exists.

Unlike a daemon, an event handler needs no finalizer. So a gateway and its namespace can be deleted even if no
operator is running, or if the operator runs in that namespace.
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
    """Start the loop of an existing gateway, or stop the loop of a deleted one."""
    operator: Operator = memo.operator
    home: asyncio.AbstractEventLoop = memo.home
    assert namespace and name and uid
    if type == "DELETED":
        home.call_soon_threadsafe(operator.loops.stop_gateway, uid)
    else:
        loop = GatewayLoop(operator, namespace, name, uid, logger)
        home.call_soon_threadsafe(operator.loops.start, namespace, name, uid, loop)

"""A running operator without its process: the handlers' shared state, and loops of gateways."""

import asyncio
import logging
from collections.abc import Callable

from proofgate_operator.handlers.loop import GatewayLoop
from proofgate_operator.handlers.operator import Operator
from proofgate_operator.kube.client import Client
from proofgate_operator.settings import read_settings
from tests.gateways import NAMESPACE, UID

IMAGES = {"WORKER_IMAGE": "worker:test", "HAPROXY_IMAGE": "haproxy:test"}
LOG = logging.getLogger("test")


def operator(client: Client, **environment: str) -> Operator:
    """Return an operator that uses `client`."""
    return Operator(client, read_settings([], {**IMAGES, **environment}))


def loop(found: Operator, name: str = "demo", uid: str = UID) -> GatewayLoop:
    """Return the loop of a gateway, which is not running."""
    return GatewayLoop(found, NAMESPACE, name, uid, LOG)


async def until(condition: Callable[[], object], seconds: float = 300) -> None:
    """Return once the condition holds; the time limit only matters for failing tests."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)

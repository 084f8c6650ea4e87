"""Reports the existing gateways to the heartbeat, so that a loop that never started is detected too."""

import asyncio

from proofgate_operator import metrics
from proofgate_operator.handlers.heartbeat import Heartbeat
from proofgate_operator.kube.store import Store

_PERIOD_SECONDS = 30.0


async def monitor_loops(store: Store, heartbeat: Heartbeat) -> None:
    """Pass the known gateways to the heartbeat, periodically until cancelled."""
    while True:
        if heartbeat.leading:
            heartbeat.set_gateways(set(store.gateways()))
        for kind, count in store.count().items():
            metrics.OBJECTS.labels(kind).set(count)
        await asyncio.sleep(_PERIOD_SECONDS)

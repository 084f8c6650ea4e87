"""Proof of life: whether every gateway is still looked at, served to the kubelet.

A process that answers is not yet one that works: a watch can die without a word. So the watchdog lists the
gateways itself and compares them with the loops; a gateway that nobody has looked at for minutes means that
only a new process will help.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from proofgate_operator import metrics
from proofgate_operator.api import KIND
from proofgate_operator.kube.client import ApiError, Client

#: A gateway may go this long without a look: ten resyncs.
SILENCE_SECONDS = 300.0
_LOOK_SECONDS = 30.0

_log = logging.getLogger(__name__)


class Pulse:
    """When each gateway was last looked at, and when it was first known. `clock` is monotonic seconds."""

    def __init__(self, silence_seconds: float = SILENCE_SECONDS, clock: Callable[[], float] = time.monotonic):
        self._silence = silence_seconds
        self._clock = clock
        self._last: dict[str, float] = {}
        self.ready = False

    def beat(self, uid: str) -> None:
        """Note that a look at a gateway ended, well or not."""
        self._last[uid] = self._clock()

    def known(self, uids: set[str]) -> None:
        """Note which gateways there are; one that is new gets its time from now."""
        now = self._clock()
        self._last = {uid: self._last.get(uid, now) for uid in uids}

    def neglected(self) -> list[str]:
        """Return the gateways that nobody looks at."""
        now = self._clock()
        return sorted(uid for uid, last in self._last.items() if now - last > self._silence)


async def watch_over(client: Client, namespaces: tuple[str, ...], pulse: Pulse) -> None:
    """List the gateways for ever. An API server that is away is not the operator's death."""
    while True:
        try:
            found: set[str] = set()
            for namespace in namespaces or (None,):
                found |= {item["metadata"]["uid"] for item in await client.list(KIND, namespace)}
            pulse.known(found)
        except (ApiError, OSError, TimeoutError) as error:
            _log.warning("cannot list gateways: %s", error)
        await asyncio.sleep(_LOOK_SECONDS)


async def serve(host: str, port: int, pulse: Pulse) -> web.AppRunner:
    """Serve /healthz, /readyz and /metrics; the caller cleans the runner up."""

    async def healthz(_: web.Request) -> web.Response:
        neglected = pulse.neglected()
        if neglected:
            return web.Response(status=500, text=f"not looked at for {SILENCE_SECONDS:g} s: {neglected}\n")
        return web.Response(text="alive\n")

    async def readyz(_: web.Request) -> web.Response:
        return web.Response(text="ready\n") if pulse.ready else web.Response(status=503, text="starting\n")

    async def exposed(_: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(metrics.REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    application = web.Application()
    application.add_routes(
        [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", exposed)]
    )
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner

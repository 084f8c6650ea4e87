"""Proof of life, served to the kubelet: whether gateways are looked at when they are due, and watches heard.

A process that answers is not yet one that works: a watch can die without a word, and so can a loop. Either
means that only a new process will help. An API server that is away does not: it is heard to be away.
"""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Protocol

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from proofgate_operator import metrics
from proofgate_operator.kube.store import Store

#: A look may be late, and a watch silent, for this long. The API server sends a bookmark about once a minute.
SILENCE_SECONDS = 300.0
_LOOK_SECONDS = 30.0


class Heard(Protocol):
    """Whatever can tell which watches are silent."""

    def silent(self, seconds: float) -> list[str]:
        """Return the names of those that were not heard of for this long."""


class Pulse:
    """When each gateway has to be looked at next. `clock` is monotonic seconds."""

    def __init__(self, silence_seconds: float = SILENCE_SECONDS, clock: Callable[[], float] = time.monotonic):
        self._silence = silence_seconds
        self._clock = clock
        self._due: dict[str, float] = {}
        self._watches: Heard | None = None
        #: Whether this replica acts; on another one nobody looks at gateways.
        self.leading = False
        self.ready = False

    def listen(self, watches: Heard) -> None:
        """Expect these watches to be heard of from now on."""
        self._watches = watches

    def beat(self, uid: str, pause: float) -> None:
        """Note that a look at a gateway ended, well or not; the next is due after `pause` seconds."""
        self._due[uid] = self._clock() + pause

    def known(self, uids: set[str]) -> None:
        """Note which gateways there are; one that is new is due now."""
        now = self._clock()
        self._due = {uid: self._due.get(uid, now) for uid in uids}

    def neglected(self) -> list[str]:
        """Return the gateways that nobody looks at."""
        if not self.leading:
            return []
        now = self._clock()
        return sorted(uid for uid, due in self._due.items() if now - due > self._silence)

    def faults(self) -> list[str]:
        """Return what only a new process will mend."""
        found = [f"not looked at for {self._silence:g} s: {uid}" for uid in self.neglected()]
        silent = self._watches.silent(self._silence) if self._watches else []
        return found + [f"watch not heard for {self._silence:g} s: {name}" for name in silent]


async def watch_over(store: Store, pulse: Pulse) -> None:
    """Compare the gateways that are known with the loops, for ever."""
    while True:
        if pulse.leading:
            pulse.known(set(store.gateways()))
        for kind, count in store.count().items():
            metrics.OBJECTS.labels(kind).set(count)
        await asyncio.sleep(_LOOK_SECONDS)


async def serve(host: str, port: int, pulse: Pulse) -> web.AppRunner:
    """Serve /healthz, /readyz and /metrics; the caller cleans the runner up.

    The host `::` takes connections of IPv4 too (RFC 3493, section 3.7).
    """

    async def healthz(_: web.Request) -> web.Response:
        faults = pulse.faults()
        if faults:
            return web.Response(status=500, text="".join(f"{fault}\n" for fault in faults))
        return web.Response(text="alive\n")

    async def readyz(_: web.Request) -> web.Response:
        if not pulse.ready:
            return web.Response(status=503, text="starting\n")
        return web.Response(text="ready, acting\n" if pulse.leading else "ready, standing by\n")

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
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio, left to bind by itself, shuts IPv4 out.
    listener = socket.create_server((host, port), family=family, dualstack_ipv6=host == "::")
    await web.SockSite(runner, listener).start()
    return runner

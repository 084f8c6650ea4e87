"""HTTP server of the operator: liveness and readiness for the kubelet, metrics for Prometheus."""

import socket

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from proofgate_operator import metrics
from proofgate_operator.handlers.heartbeat import Heartbeat


async def serve(host: str, port: int, heartbeat: Heartbeat) -> web.AppRunner:
    """Serve /healthz, /readyz and /metrics; the caller must clean up the returned runner.

    The host `::` accepts IPv4 connections too (RFC 3493, section 3.7).
    """

    async def healthz(_: web.Request) -> web.Response:
        faults = heartbeat.faults()
        if faults:
            return web.Response(status=500, text="".join(f"{fault}\n" for fault in faults))
        return web.Response(text="alive\n")

    async def readyz(_: web.Request) -> web.Response:
        if not heartbeat.ready:
            return web.Response(status=503, text="starting\n")
        return web.Response(text="ready, acting\n" if heartbeat.leading else "ready, standing by\n")

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
    # If asyncio binds the socket itself, it excludes IPv4.
    listener = socket.create_server((host, port), family=family, dualstack_ipv6=host == "::")
    await web.SockSite(runner, listener).start()
    return runner

"""The agent's process: the sync loop, and a port for probes and metrics.

It is plain ASGI, because FastAPI would triple the memory of a process that serves only a few paths.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import uvloop

from proofgate.haproxy_sidecar import metrics, servers
from proofgate.haproxy_sidecar.addresses import WorkerAddresses
from proofgate.haproxy_sidecar.certificate import CertificateFile
from proofgate.haproxy_sidecar.follower import SyncLoop
from proofgate.haproxy_sidecar.map_sources import SHARD_FILE_FORMATS
from proofgate.haproxy_sidecar.runtime_api import RuntimeApi, UnreachableError
from proofgate.haproxy_sidecar.target import RefusedError, SyncTarget
from proofgate.haproxy_sidecar.tenant_map import MapFile
from proofgate.haproxy_sidecar.traffic_probe import TrafficProbe
from proofgate.haproxy_sidecar.weights import WeightsFile
from proofgate.http_server import Server, address_of, on_signals

_TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"
_OWNER_MAP = "owners.map"

_Send = Callable[[dict[str, Any]], Awaitable[None]]


def build_targets(
    api: RuntimeApi,
    maps: list[Path],
    weights: Path | None,
    certificate: Path | None,
    tenant_shards: Path | None = None,
    workers: Path | None = None,
    client_certificate: Path | None = None,
    server_state: Path | None = None,
    kept_maps: Path | None = None,
) -> list[SyncTarget]:
    """Creates the targets that the agent syncs."""
    kept = {path: kept_maps / path.name for path in maps if kept_maps and path.name in SHARD_FILE_FORMATS}
    found: list[SyncTarget] = [MapFile(path, api, tenant_shards, kept=kept.get(path)) for path in maps]
    if workers is not None:
        found.append(WorkerAddresses(workers, api, state=server_state))
    if weights is not None:
        found.append(WeightsFile(weights, api))
    if certificate is not None:
        found.append(CertificateFile(certificate, api))
    if client_certificate is not None:
        found.append(CertificateFile(client_certificate, api, "client certificate"))
    return found


def create_app(
    follower: SyncLoop, workers: servers.WorkerDiscovery, api: RuntimeApi, answers: TrafficProbe | None = None
) -> Callable[..., Awaitable[None]]:
    """Creates the ASGI application: `/healthz`, `/readyz`, `/metrics`, `/workers`, and with `answers`
    `/answers`."""

    async def answer(path: str) -> tuple[HTTPStatus, str, str]:
        match path:
            case "/healthz":
                return HTTPStatus.OK, _TEXT, "ok\n"
            case "/readyz":
                behind = follower.out_of_sync()
                missing = f"not in sync: {', '.join(behind)}" if behind else await workers.not_ready_reason()
                if missing:
                    return HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, f"{missing}\n"
                return HTTPStatus.OK, _TEXT, "ok\n"
            case "/metrics":
                return HTTPStatus.OK, metrics.CONTENT_TYPE, metrics.render(follower)
            case "/workers":
                return await _worker_report(api, follower)
            case "/answers" if answers is not None:
                return HTTPStatus.OK, _JSON, json.dumps(answers.status())
        return HTTPStatus.NOT_FOUND, _TEXT, "not found\n"

    async def app(scope: dict[str, Any], _: object, send: _Send) -> None:
        status, kind, text = await answer(scope["path"])
        body = text.encode()
        headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": int(status), "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


async def _worker_report(api: RuntimeApi, follower: SyncLoop) -> tuple[HTTPStatus, str, str]:
    """Reports HAProxy's current state of each worker and its map of owners. The operator removes a worker
    only after it has read this report."""
    try:
        found = await servers.fetch_workers(api)
    except (RefusedError, UnreachableError) as error:
        return HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, f"{error}\n"
    told = [
        {
            "name": name,
            "address": server.address,
            "state": server.state,
            "seconds": server.seconds_since_change,
        }
        for name, server in found.items()
    ]
    return HTTPStatus.OK, _JSON, json.dumps({"workers": told, "owners": _owner_map_digest(follower)})


def _owner_map_digest(follower: SyncLoop) -> str | None:
    for found in follower.standings:
        if isinstance(found.target, MapFile) and found.target.name == _OWNER_MAP and found.in_sync:
            return found.target.digest(found.last_applied)
    return None


async def _serve(
    follower: SyncLoop, api: RuntimeApi, listener: socket.socket, answers: TrafficProbe | None
) -> None:
    server = Server(
        create_app(follower, servers.WorkerDiscovery(api), api, answers),
        f"proofgate haproxy-sidecar: http://{address_of(listener)}",
    )

    def stop() -> None:
        server.should_exit = True

    tasks = [asyncio.create_task(follower.run())]
    if answers is not None:
        tasks.append(asyncio.create_task(answers.run()))
    with on_signals(stop):
        await server.serve(sockets=[listener])
    for task in tasks:
        task.cancel()


def run(
    follower: SyncLoop, api: RuntimeApi, listener: socket.socket, answers: TrafficProbe | None = None
) -> None:
    """Syncs HAProxy, probes it and serves requests until SIGTERM or SIGINT."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(follower, api, listener, answers))

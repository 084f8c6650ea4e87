"""Portkey's gateway (Node)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.processes import GATEWAY_CORE, free_port, pinned
from bench.request import KEY
from bench.rivals import environment
from bench.system import System

_PACKAGE = "1.15.2"
# Its version range allows a newer server, with which every stream gets 500 ("TypeError: immutable").
_SERVER = {"@hono/node-server": "1.13.8"}
VERSION = f"{_PACKAGE}, @hono/node-server {_SERVER['@hono/node-server']}"


def prepare() -> str:
    """Installs it."""
    _modules()
    return VERSION


def _modules() -> Path:
    return environment.node("portkey", VERSION, f"@portkey-ai/gateway@{_PACKAGE}", _SERVER)


@contextmanager
def start(folder: Path, upstream: str, *, provider: str = "openai") -> Iterator[System]:
    """Headless; the client names the provider with each request."""
    port = free_port()
    server = _modules() / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    headers = {
        "Authorization": f"Bearer {KEY}",
        "x-portkey-provider": provider,
        "x-portkey-custom-host": f"http://{upstream}/v1",
    }
    command = ["node", str(server), f"--port={port}", "--headless"]
    log = folder / "portkey.log"
    with pinned(GATEWAY_CORE, command, log, port=port, folder=folder) as process:
        yield System(f"127.0.0.1:{port}", process, headers=headers)

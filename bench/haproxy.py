"""HAProxy, the plain proxy."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.processes import GATEWAY_CORE, free_port, pinned
from bench.request import KEY
from bench.system import System

_CONFIGURATION = """
global
    nbthread 1
    maxconn 4096
defaults
    mode http
    # Tokens are passed on when they come, as in every other system; without it they wait for up to 200 ms.
    option http-no-delay
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend front
    bind 127.0.0.1:{port}
    default_backend upstream
backend upstream
    server upstream {upstream}
"""


def version() -> str:
    """The version of HAProxy."""
    output = subprocess.run(["haproxy", "-v"], capture_output=True, text=True, check=True).stdout
    return output.split()[2]


@contextmanager
def plain_proxy(folder: Path, upstream: str) -> Iterator[System]:
    """A plain HTTP proxy: no checks, no log."""
    port = free_port()
    configuration = folder / "haproxy.cfg"
    configuration.write_text(_CONFIGURATION.format(port=port, upstream=upstream))
    command = ["haproxy", "-db", "-f", str(configuration)]
    with pinned(GATEWAY_CORE, command, folder / "haproxy.log", port=port) as process:
        yield System(f"127.0.0.1:{port}", process, headers={"Authorization": f"Bearer {KEY}"})

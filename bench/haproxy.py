"""HAProxy in both of its roles: the server that answers by itself, and the plain proxy."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.processes import GATEWAY_CORE, free_port, pinned
from bench.request import KEY
from bench.system import System

ANSWER = (
    '{"id":"chatcmpl-bench","object":"chat.completion","created":1700000000,"model":"gpt-4o-mini","choices":'
    '[{"index":0,"message":{"role":"assistant","content":"'
    + "The quick brown fox jumps over the lazy dog. " * 3
    + '"},"finish_reason":"stop"}],"usage":{"prompt_tokens":57,"completion_tokens":31,"total_tokens":88}}'
)

_CONFIGURATION = """
global
    nbthread 1
    maxconn 4096
    {tuning}
defaults
    mode http
    # Tokens are passed on when they come, as in every other system; without it they wait for up to 200 ms.
    option http-no-delay
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend front
    bind 127.0.0.1:{port}
    {action}
{backend}
"""
# A whole prompt has to fit: an answer to half a request would end the connection.
_BUFFER = "tune.bufsize 262144"


def version() -> str:
    """The version of HAProxy."""
    output = subprocess.run(["haproxy", "-v"], capture_output=True, text=True, check=True).stdout
    return output.split()[2]


@contextmanager
def null_server(folder: Path, core: int) -> Iterator[System]:
    """Answers every request with the same completion: the upstream, and the load generator's own limit."""
    body = folder / "answer.json"
    body.write_text(ANSWER)
    answer = f"http-request return status 200 content-type application/json file {body}"
    with _run(folder, f"null-{core}", core, f"option http-buffer-request\n    {answer}", tuning=_BUFFER) as system:
        yield system


@contextmanager
def plain_proxy(folder: Path, upstream: str) -> Iterator[System]:
    """A plain HTTP proxy: no checks, no log."""
    backend = f"backend upstream\n    server upstream {upstream}"
    with _run(folder, "haproxy", GATEWAY_CORE, "default_backend upstream", backend) as system:
        yield system


@contextmanager
def _run(folder: Path, name: str, core: int, action: str, backend: str = "", tuning: str = "") -> Iterator[System]:
    port = free_port()
    configuration = folder / f"{name}.cfg"
    configuration.write_text(_CONFIGURATION.format(port=port, action=action, backend=backend, tuning=tuning))
    command = ["haproxy", "-db", "-f", str(configuration)]
    with pinned(core, command, folder / f"{name}.log", port=port) as process:
        yield System(f"127.0.0.1:{port}", process, headers={"Authorization": f"Bearer {KEY}"})

"""The systems that are compared, each started on the gateway's core in front of the same fixed answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from proofgate import _core

from bench.processes import GATEWAY_CORE, LOAD_CORE, Pinned, free_port, pinned

KEY = "bench-key-0123456789abcdef0123456789"
MODEL = "gpt-4o-mini"
LEDGER = "proofgate.dev/bench/bench"

ANSWER = (
    '{"id":"chatcmpl-bench","object":"chat.completion","created":1700000000,"model":"gpt-4o-mini","choices":'
    '[{"index":0,"message":{"role":"assistant","content":"'
    + "The quick brown fox jumps over the lazy dog. " * 3
    + '"},"finish_reason":"stop"}],"usage":{"prompt_tokens":57,"completion_tokens":31,"total_tokens":88}}'
)

_HAPROXY = """
global
    nbthread 1
    maxconn 4096
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend front
    bind 127.0.0.1:{port}
    {action}
{backend}
"""


@dataclass(frozen=True)
class System:
    """One running system under test."""

    name: str
    url: str
    pinned: Pinned


@contextmanager
def _haproxy(name: str, folder: Path, core: int, action: str, backend: str = "") -> Iterator[System]:
    port = free_port()
    config = folder / f"{name}.cfg"
    config.write_text(_HAPROXY.format(port=port, action=action, backend=backend))
    with pinned(core, ["haproxy", "-db", "-f", str(config)], port=port) as process:
        yield System(name, f"http://127.0.0.1:{port}", process)


@contextmanager
def null_server(folder: Path, core: int = LOAD_CORE) -> Iterator[System]:
    """A server that answers every request with the same completion: the upstream, and the generator's own limit."""
    body = folder / "answer.json"
    body.write_text(ANSWER)
    action = f"http-request return status 200 content-type application/json file {body}"
    with _haproxy(f"null-{core}", folder, core, action) as system:
        yield system


@contextmanager
def haproxy(folder: Path, upstream: System) -> Iterator[System]:
    """HAProxy as a plain proxy: no checks, no log, nothing switched on."""
    address = upstream.url.removeprefix("http://")
    backend = f"backend upstream\n    server upstream {address}"
    with _haproxy("haproxy", folder, GATEWAY_CORE, "default_backend upstream", backend) as system:
        yield system


@contextmanager
def proofgate(folder: Path, upstream: System, spin: bool = False) -> Iterator[System]:
    """A worker with the guard, authentication and the ledger on; `spin` adds a Python thread that never rests."""
    home = folder / ("proofgate-spin" if spin else "proofgate")
    (home / "ledger").mkdir(parents=True)
    secret, _ = _core.generate_key(LEDGER)
    (home / "signing-key").write_text(secret)
    port, admin = free_port(), free_port()
    config = home / "gateway.yaml"
    document = {
        "ledger": {
            "name": LEDGER,
            "directory": str(home / "ledger"),
            "signingKeyFile": str(home / "signing-key"),
            "durability": "written",
        },
        "listen": f"127.0.0.1:{port}",
        "admin": {"listen": f"127.0.0.1:{admin}"},
        "providers": [{"name": "mock", "type": "openai", "baseURL": f"{upstream.url}/v1"}],
        "models": [{"name": MODEL, "provider": "mock"}],
        "tenants": [{"name": "bench", "keyHashes": [_core.hash_api_key(KEY)]}],
        "timeouts": {"lameDuckSeconds": 0},
    }
    config.write_text(yaml.safe_dump(document))
    module = "bench.spinning_worker" if spin else "proofgate"
    command = [sys.executable, "-m", module, "serve", "--config", str(config)]
    with pinned(GATEWAY_CORE, command, ready="proofgate ready") as process:
        yield System("proofgate-spinning" if spin else "proofgate", f"http://127.0.0.1:{port}", process)

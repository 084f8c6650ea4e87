"""airblackbox's gateway (Go) with its audit chain on. It is the only other gateway that chains its records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from bench.processes import GATEWAY_CORE, free_port, pinned
from bench.request import KEY
from bench.rivals import environment
from bench.system import System

VERSION = "v1.13.2"


def prepare() -> str:
    """Builds it."""
    _binary()
    return VERSION


def _binary() -> Path:
    return environment.go("airblackbox", VERSION, "github.com/airblackbox/gateway", "cmd/gateway")


@contextmanager
def start(folder: Path, upstream: str) -> Iterator[System]:
    """One provider, the chain on, its records in the scratch folder."""
    port = free_port()
    file = folder / "guardrails.yaml"
    file.write_text(yaml.safe_dump({"trust": {"enabled": True, "signing_key": "bench-0123456789abcdef"}}))
    command = [str(_binary()), "-addr", f"127.0.0.1:{port}", "-provider", f"http://{upstream}"]
    log = folder / "airblackbox.log"
    environ = {"GUARDRAILS_CONFIG": str(file), "GOMAXPROCS": "1"}
    with pinned(GATEWAY_CORE, command, log, port=port, environment=environ, folder=folder) as process:
        yield System(f"127.0.0.1:{port}", process, headers={"Authorization": f"Bearer {KEY}"})

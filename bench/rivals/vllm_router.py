"""vllm-router, the router of the vLLM project (Rust)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.processes import GATEWAY_CORE, free_port, pinned
from bench.rivals import environment
from bench.system import System

VERSION = "0.1.17"


def prepare() -> str:
    """Installs it."""
    _commands()
    return VERSION


def _commands() -> Path:
    return environment.python("vllm-router", VERSION, f"vllm-router=={VERSION}")


@contextmanager
def start(folder: Path, upstream: str) -> Iterator[System]:
    """One worker behind it."""
    port = free_port()
    command = [
        *(str(_commands() / "vllm-router"), "--worker-urls", f"http://{upstream}", "--host", "127.0.0.1"),
        *("--port", str(port), "--prometheus-port", str(free_port())),
    ]
    log = folder / "vllm-router.log"
    with pinned(GATEWAY_CORE, command, log, port=port, folder=folder) as process:
        yield System(f"127.0.0.1:{port}", process)

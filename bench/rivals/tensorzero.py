"""TensorZero's gateway, observability off, from the wheel that embeds it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bench.processes import GATEWAY_CORE, pinned
from bench.request import MODEL
from bench.rivals import environment
from bench.system import System

VERSION = "2026.6.0"

_CONFIGURATION = """
[gateway]
observability.enabled = false

[models.{model}]
routing = ["mock"]

[models.{model}.providers.mock]
type = "{provider}"
model_name = "{model}"
api_base = "http://{upstream}{path}"
api_key_location = "{key}"
"""
# The path after the address of each provider, and the location of its key: Anthropic's requires one.
_PATHS = {"openai": ("/v1/", "none"), "anthropic": ("/v1/messages", "env::ANTHROPIC_API_KEY")}

# The wheel has no command: its embedded gateway is started from Python and lives as long as the process.
_SERVER = """
import sys, threading
from tensorzero.tensorzero import _start_http_gateway
gateway = _start_http_gateway(
    config_file=sys.argv[1], clickhouse_url=None, postgres_url=None, valkey_url=None, async_setup=False)
print("serving", gateway.base_url, flush=True)
threading.Event().wait()
"""


def prepare() -> str:
    """Installs it."""
    _commands()
    return VERSION


def _commands() -> Path:
    return environment.python("tensorzero", VERSION, f"tensorzero=={VERSION}")


@contextmanager
def start(folder: Path, upstream: str, *, provider: str = "openai") -> Iterator[System]:
    """One model behind its OpenAI-compatible path."""
    file = folder / "tensorzero.toml"
    path, key = _PATHS[provider]
    file.write_text(_CONFIGURATION.format(model=MODEL, upstream=upstream, provider=provider, path=path, key=key))
    server = folder / "tensorzero_server.py"
    server.write_text(_SERVER)
    log = folder / "tensorzero.log"
    environ = {"ANTHROPIC_API_KEY": "unused"}
    command = [str(_commands() / "python"), str(server), str(file)]
    with pinned(GATEWAY_CORE, command, log, ready="serving ", folder=folder, environment=environ) as process:
        base = urlsplit(log.read_text().split("serving ", 1)[1].split()[0])
        path = f"{base.path}/chat/completions"
        yield System(base.netloc, process, path=path, model=f"tensorzero::model_name::{MODEL}")

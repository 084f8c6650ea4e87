"""LiteLLM's proxy, one worker, without a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from bench.processes import GATEWAY_CORE, free_port, pinned
from bench.request import MODEL
from bench.rivals import environment
from bench.system import System

VERSION = "1.106.2"
# LiteLLM refuses a weak key, and accepts only keys with this prefix.
_MASTER_KEY = "sk-bench-0123456789abcdef0123456789abcdef"


def prepare() -> str:
    """Installs it."""
    _commands()
    return VERSION


def _commands() -> Path:
    return environment.python("litellm", VERSION, f"litellm[proxy]=={VERSION}")


def before_openai(upstream: str) -> dict[str, str]:
    """The model's settings for an upstream with OpenAI's API."""
    return {"model": f"openai/{MODEL}", "api_base": f"http://{upstream}/v1", "api_key": "unused"}


def before_anthropic(upstream: str) -> dict[str, str]:
    """The model's settings for an upstream with Anthropic's API."""
    return {"model": f"anthropic/{MODEL}", "api_base": f"http://{upstream}", "api_key": "unused"}


@contextmanager
def start(
    folder: Path, upstream: str, *, provider: Callable[[str], dict[str, str]] = before_openai
) -> Iterator[System]:
    """One model, one key."""
    port = free_port()
    file = folder / "litellm.yaml"
    document = {
        "model_list": [{"model_name": MODEL, "litellm_params": provider(upstream)}],
        "general_settings": {"master_key": _MASTER_KEY},
    }
    file.write_text(yaml.safe_dump(document))
    command = [
        *(str(_commands() / "litellm"), "--config", str(file), "--host", "127.0.0.1", "--port", str(port)),
        *("--num_workers", "1", "--telemetry", "False"),
    ]
    # LiteLLM uses its local list of prices; otherwise it would fetch one at the start.
    environ = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    log = folder / "litellm.log"
    with pinned(GATEWAY_CORE, command, log, port=port, environment=environ, folder=folder, seconds=180) as process:
        yield System(f"127.0.0.1:{port}", process, headers={"Authorization": f"Bearer {_MASTER_KEY}"})

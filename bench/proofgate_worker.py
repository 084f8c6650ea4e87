"""One Proofgate worker with all features on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from proofgate import _core

from bench.processes import GATEWAY_CORE, free_port, pinned
from bench.request import CLAUDE, KEY, MODEL
from bench.system import System

_LEDGER = "proofgate.dev/bench/bench"
_DURABILITY = "Written"

# Whether the installed worker has the policy engine and the limits.
GOVERNED = hasattr(_core, "policy_rules")
# Every built-in rule.
POLICY: dict[str, Any] = {"packs": ["exfiltration", "jailbreak", "obfuscation", "pii", "prompt-injection", "secrets"]}
# Limits that are counted for every request and never reached.
LIMITS: dict[str, int] = {
    "requestsPerMinute": 1_000_000_000,
    "tokensPerMinute": 1_000_000_000_000,
    "tokensPerDay": 1_000_000_000_000,
    "concurrency": 100_000,
}


def features() -> list[str]:
    """The features of this worker that apply to each request, by its configuration."""
    on = ["framing guard", "authentication", f"ledger ({_DURABILITY.lower()})"]
    if GOVERNED:
        on += [f"policy ({', '.join(POLICY['packs'])})", "limits"]
    return on


def configuration(home: Path, upstream: str, port: int) -> dict[str, Any]:
    """The worker's configuration file, with all features on."""
    tenant: dict[str, Any] = {"name": "bench", "keyHashes": [_core.hash_api_key(KEY)]}
    document: dict[str, Any] = {
        "ledger": {
            "name": _LEDGER,
            "directory": str(home / "ledger"),
            "signingKeyFile": str(home / "signing-key"),
            "durability": _DURABILITY,
        },
        "listen": f"127.0.0.1:{port}",
        "admin": {"listen": f"127.0.0.1:{free_port()}"},
        "providers": [
            {"name": "mock", "type": "OpenAI", "baseURL": f"http://{upstream}/v1"},
            {"name": "claude", "type": "Anthropic", "baseURL": f"http://{upstream}/v1"},
        ],
        "models": [{"name": MODEL, "provider": "mock"}, {"name": CLAUDE, "provider": "claude"}],
        "tenants": [tenant],
        "timeouts": {"lameDuckSeconds": 0},
    }
    if GOVERNED:
        document["policy"] = POLICY
        tenant["limits"] = LIMITS
    return document


def without_rules(document: dict[str, Any]) -> None:
    """Removes the rules from a configuration."""
    document.pop("policy", None)


@contextmanager
def start(
    folder: Path,
    upstream: str,
    *,
    spin: bool = False,
    change: Callable[[dict[str, Any]], None] | None = None,
    package: Path | None = None,
) -> Iterator[System]:
    """A worker on the gateway's core; `spin` adds a Python thread that never rests, `change` edits its file, and
    `package` is where another build's Python package lies."""
    home = folder / "proofgate"
    (home / "ledger").mkdir(parents=True)
    secret, verifying_key = _core.generate_key(_LEDGER)
    (home / "signing-key").write_text(secret)
    (home / "verifying-key").write_text(verifying_key)
    port = free_port()
    file = home / "gateway.yaml"
    document = configuration(home, upstream, port)
    if change is not None:
        change(document)
    file.write_text(yaml.safe_dump(document))
    module = "bench.spinning_worker" if spin else "proofgate"
    command = [sys.executable, "-m", module, "serve", "--config", str(file)]
    environment = {"PYTHONPATH": str(package)} if package else None
    with pinned(GATEWAY_CORE, command, home / "log", ready="proofgate ready", environment=environment) as process:
        yield System(f"127.0.0.1:{port}", process, headers={"Authorization": f"Bearer {KEY}"})

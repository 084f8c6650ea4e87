"""A real worker that records its inputs and can fail in ways that a test cannot provoke.

Files in the ledger's directory select the failure, also in another process: `in-flight` (an exchange has
not ended), `unready` (its content is the reason), `failed` (a thread has ended unexpectedly),
`refuse-start` and `refuse-config` (their content is the reason).
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

from failures import failure

from proofgate import _core

_RealWorker = _core.Worker


class Worker:
    """Passes all other attributes to the real worker."""

    def __init__(self, config_json: str) -> None:
        self.settings: dict[str, Any] = json.loads(config_json)
        self._faults = Path(self.settings["ledger"]["directory"])
        self._refuse("refuse-config", _core.ConfigError, "config")
        self.core = _RealWorker(config_json)
        self.reloads = 0
        self.intervals: list[str] = []
        #: Issuers whose keys are requested, in addition to those that the worker requests.
        self.wanted: list[str] = []
        self.key_sets: dict[str, str] = {}
        self.lost: dict[str, int] = {}
        self.tenant_shards: dict[int, tuple[bytes, bytes]] = {}
        self.shard_changes: list[list[int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.core, name)

    def start(self) -> None:
        self._refuse("refuse-start", _core.LedgerError, "ledger_unreadable")
        self.core.start()

    def ready(self) -> str | None:
        if (self._faults / "failed").exists():
            return "failed"
        unready = self._faults / "unready"
        return unready.read_text() if unready.exists() else self.core.ready()

    def prove(self, request_id: str, timeout_seconds: float) -> str:
        if request_id == "not-covered":
            raise failure(_core.LedgerError, "no checkpoint covers the exchange", "ledger")
        return self.core.prove(request_id, timeout_seconds)

    def join(self, timeout_seconds: float) -> bool:
        deadline = time.monotonic() + timeout_seconds
        while (self._faults / "in-flight").exists():
            if time.monotonic() >= deadline:
                return False
            threading.Event().wait(0.005)
        return self.core.join(max(deadline - time.monotonic(), 0.0))

    def reload(self, config_json: str) -> None:
        self._refuse("refuse-config", _core.ConfigError, "config")
        self.core.reload(config_json)
        self.settings = json.loads(config_json)
        self.reloads += 1

    def set_key_set(self, issuer: str, jwks_json: str) -> int:
        usable = self.core.set_key_set(issuer, jwks_json)
        self.key_sets[issuer] = jwks_json
        return usable

    def take_requested_key_sets(self) -> list[str]:
        wanted, self.wanted = [*self.wanted, *self.core.take_requested_key_sets()], []
        return wanted

    def set_tenant_shards(self, files: list[tuple[int, bytes, bytes]]) -> str:
        report = self.core.set_tenant_shards(files)
        refused = {entry["shard"] for entry in json.loads(report)["refused"]}
        self.tenant_shards |= {
            number: (keys, tenants) for number, keys, tenants in files if number not in refused
        }
        self.shard_changes.append([number for number, _, _ in files])
        return report

    def policy_queue(self, policy: str) -> Any:
        return self.core.policy_queue(policy)

    def count_lost_telemetry(self, signal: str, count: int) -> None:
        self.core.count_lost_telemetry(signal, count)
        self.lost[signal] = self.lost.get(signal, 0) + count

    def record_interval(self, name: str, duration_seconds: float) -> None:
        self.core.record_interval(name, duration_seconds)
        if self.core.profiling():
            self.intervals.append(name)

    def _refuse(self, name: str, kind: type[_core.ProofgateError], code: str) -> None:
        if (self._faults / name).exists():
            raise failure(kind, (self._faults / name).read_text(), code)

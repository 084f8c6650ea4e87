"""A ledger's auditor as the core has it, of one shard and with findings that a test gives it."""

from __future__ import annotations

import json
from typing import Any

NOTE = "proofgate.dev/ns/audit\n2\ncm9vdA==\n\n— proofgate.dev/ns/audit c2ln\n"
IDLE = {
    "records": 0,
    "bytes": 0,
    "scrubbed_records": 0,
    "scrubbed_bytes": 0,
    "scrub_rounds": 0,
    "appended": 0,
    "entries": 2,
    "behind": 0,
    "suspicious": False,
    "changed": False,
}


class Auditor:
    def __init__(
        self,
        ledger: str,
        state: str,
        signing_key: str,
        ledger_key: str,
        beat_us: int,
        second_look_us: int,
        stall_us: int,
        new_aggregate: bool = False,
        resume: bool = False,
        held: str | None = None,
    ) -> None:
        if not signing_key.startswith("PRIVATE+KEY+"):
            raise ValueError("not a private note key")
        if held is not None:
            raise _error(f"held: {held}", "auditor_state_lost")
        if not (new_aggregate or resume):
            raise _error("the state is empty", "auditor_state_missing")
        self.opened = (ledger, state, ledger_key)
        self.patience = (beat_us, second_look_us, stall_us)
        self.found: list[dict[str, Any]] = []
        #: What polls return, one after the other; then nothing is new.
        self.polls: list[dict[str, Any]] = []
        self.asked: list[tuple[int, int, int]] = []
        self.failure: str | None = None

    def poll(self, now_us: int, budget_bytes: int, scrub_bytes: int) -> str:
        self.asked.append((now_us, budget_bytes, scrub_bytes))
        if self.failure is not None:
            raise _error(self.failure, "auditor_state_io")
        return json.dumps(IDLE | (self.polls.pop(0) if self.polls else {}))

    def findings(self) -> str:
        return json.dumps({"findings": self.found, "left_out": 0})

    def heads(self) -> str:
        head = {"shard": "0", "logs": 3, "origin": "a/0/X", "size": 7, "time": 1, "ended": False}
        return json.dumps([head | {"lag": 1_500_000, "checkpoint": "note"}])

    def checkpoint(self) -> tuple[int, str]:
        return 2, NOTE

    def read(self, path: str) -> bytes | None:
        return b"hashes" if path == "tile/0/000.p/2" else None

    def inclusion(self, index: int, size: int) -> list[str]:
        if index >= size:
            raise _error(f"entry {index} is not among {size}", "out_of_range")
        return ["aGFzaA=="]

    def consistency(self, old: int, new: int) -> list[str]:
        return [] if old == new else ["aGFzaA=="]


def _error(message: str, code: str) -> Exception:
    # The double of the core has the errors, and takes this class from here.
    import core_double

    return core_double.AuditorError(message, code)

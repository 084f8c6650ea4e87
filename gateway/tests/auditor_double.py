"""A stand-in for the core's auditor of one ledger: one shard, and findings from the test."""

from __future__ import annotations

import json
from typing import Any

from failures import failure
from signing import AUDITOR

from proofgate import _core

NOTE = "proofgate.dev/ns/audit\n2\ncm9vdA==\n\n— proofgate.dev/ns/audit c2ln\n"
IDLE = {
    "records": 0,
    "bytes": 0,
    "scrubbed_records": 0,
    "scrubbed_bytes": 0,
    "scrub_rounds": 0,
    "appended": 0,
    "entries": 2,
    "unread_records": 0,
    "removed": 0,
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
        policy: bytes | None = None,
        keeping_key: str | None = None,
        served: object | None = None,
    ) -> None:
        if not signing_key.startswith("PRIVATE+KEY+"):
            raise ValueError("not a private note key")
        if held is not None:
            raise failure(_core.AuditorError, f"held: {held}", "auditor_state_lost")
        if not (new_aggregate or resume):
            raise failure(_core.AuditorError, "the state is empty", "auditor_state_missing")
        self.opened = (ledger, state, ledger_key)
        self.served = served
        #: The workers' states that were passed before each poll.
        self.reach: list[dict[str, Any]] = []
        self.keeping_key = keeping_key
        self.patience = (beat_us, second_look_us, stall_us)
        self.found: list[dict[str, Any]] = []
        #: The results of polls, in order; after them, polls find nothing new.
        self.polls: list[dict[str, Any]] = []
        self.asked: list[tuple[int, int, int]] = []
        self.failure: str | None = None
        self.published: tuple[int, str] | None = (2, NOTE)
        #: The policy of this double has lines of `name url`.
        lines = [line.split() for line in (policy or b"").decode().splitlines()]
        self.urls: list[tuple[str, str | None]] = [(line[0], line[1] if line[1:] else None) for line in lines]
        #: Requests to witnesses by their numbers, and the results.
        self.questions: dict[int, list[str]] = {}
        self.answered: list[tuple[int, int, str, bytes]] = []
        self.failed: list[tuple[int, str]] = []
        self.result = "cosigned"
        #: The logs' directories and notes, and the times from which they were requested.
        self.heads_accepted: list[tuple[str, str]] = []
        self.since: list[int] = []
        #: The newest reported head of an access log, and the reasons why one was found to be changed.
        self.reads: tuple[int, int, bytes] | None = None
        self.changed_reads: list[str] = []

    def set_worker_states(self, workers: str) -> None:
        self.reach.append(json.loads(workers))

    def poll(self, now_us: int, budget_bytes: int, scrub_bytes: int) -> str:
        self.asked.append((now_us, budget_bytes, scrub_bytes))
        if self.failure is not None:
            raise failure(_core.AuditorError, self.failure, "auditor_state_io")
        return json.dumps(IDLE | (self.polls.pop(0) if self.polls else {}))

    def accepted(self, since_us: int) -> list[tuple[str, str]]:
        self.since.append(since_us)
        return self.heads_accepted

    def recorded_access_log_head(self) -> tuple[int, int, bytes] | None:
        return self.reads

    def set_access_log_head(self, begun: int, size: int, root: bytes) -> None:
        if size:
            self.reads = (begun, size, root)

    def report_access_log_mismatch(self, why: str) -> None:
        self.changed_reads.append(why)

    def findings(self) -> str:
        return json.dumps({"findings": self.found, "left_out": 0})

    def heads(self) -> str:
        head = {"shard": "0", "logs": 3, "origin": "a/0/X", "size": 7, "time": 1, "ended": False}
        return json.dumps([head | {"lag": 1_500_000, "checkpoint": "note"}])

    def checkpoint(self) -> tuple[int, str] | None:
        return self.published

    def verifying_keys(self) -> tuple[str, str]:
        return AUDITOR.verifying, self.opened[2]

    def witness_urls(self) -> list[tuple[str, str | None]]:
        return self.urls

    def witnesses(self) -> str:
        standing = {"asked": True, "size": 2, "time": 9, "last": self.result, "results": {self.result: 3}}
        return json.dumps([{"name": name} | standing for name, _ in self.urls])

    def next_witness_request(self, witness: int, now_us: int) -> str | None:
        assert now_us > 0
        if self.failure is not None:
            raise failure(_core.AuditorError, self.failure, "auditor_state_io")
        questions = self.questions.get(witness)
        return questions.pop(0) if questions else None

    def witness_answer(
        self, witness: int, status: int, media_type: str, body: bytes, now_us: int, unix_seconds: int
    ) -> str:
        assert now_us > 0
        assert unix_seconds > 0
        self.answered.append((witness, status, media_type, body))
        return self.result

    def witness_failed(self, witness: int, why: str, now_us: int) -> str:
        assert now_us > 0
        self.failed.append((witness, why))
        return why

    def tlog_proof(self, index: int) -> str | None:
        if index >= 2:
            raise failure(_core.AuditorError, f"entry {index} is not among 2", "out_of_range")
        return None if self.published is None else f"c2sp.org/tlog-proof@v1\nindex {index}\n\n{NOTE}"

    def read(self, path: str) -> bytes | None:
        return b"hashes" if path == "tile/0/000.p/2" else None

    def inclusion(self, index: int, size: int) -> list[str]:
        if index >= size:
            raise failure(_core.AuditorError, f"entry {index} is not among {size}", "out_of_range")
        return ["aGFzaA=="]

    def consistency(self, old: int, new: int) -> list[str]:
        return [] if old == new else ["aGFzaA=="]

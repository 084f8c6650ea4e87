"""A stand-in for the core's witness, with the test's answers."""

from __future__ import annotations

import json

from failures import failure

from proofgate import _core

LINE = "\u2014 witness.example d2l0bmVzcw==\n"


class Witness:
    def __init__(self, state: str, signing_key: str, logs: str, new_state: bool = False) -> None:
        if not signing_key.startswith("PRIVATE+KEY+"):
            raise ValueError("not a private note key")
        if not logs.startswith("logs/v0"):
            raise failure(_core.WitnessError, "list of logs, line 1", "witness_log_list")
        if not new_state:
            raise failure(_core.WitnessError, "the state is empty", "witness_state_missing")
        self.state = state
        self.answers: list[tuple[int, str, str]] = []
        self.asked: list[bytes] = []

    @property
    def verifying_key(self) -> str:
        return "witness.example+1a2b3c4d+cHVibGlj"

    def add_checkpoint(self, body: bytes, unix_seconds: int) -> tuple[int, str, str]:
        assert unix_seconds > 0
        self.asked.append(body)
        return self.answers.pop(0) if self.answers else (200, "cosigned", LINE)

    def checkpoint(self, origin_digest: str) -> str | None:
        return "note" if origin_digest == "ab" else None

    def heads(self) -> str:
        return json.dumps([{"origin": 'log.example/"a"', "size": 7}])

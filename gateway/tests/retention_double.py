"""A stand-in for the core's retention state: the state is a file, and one log of the ledger can go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from failures import failure

from proofgate import _core

LOG = {
    "origin": "a/0/X",
    "dir": "ledger/0/X",
    "action": "remove",
    "records": 81,
    "exchanges": 40,
    "bytes": 9000,
    "newest": 1_700_000_000_000_000,
    "reasons": [],
    "left": [],
}
STAYS = LOG | {
    "origin": "a/0/Y",
    "action": "stay",
    "reasons": [{"code": "held", "text": "hold 1 touches records of it"}],
}


class RetentionState:
    #: The arguments of the last `prune` and of the last `erase`.
    pruned: tuple[Any, ...] = ()
    erased: tuple[Any, ...] = ()
    #: The entries in the auditor's log that the last `prune` received.
    anchored: set[str] | None = None
    #: The ledger and the key of the last `state_holds`.
    stated: tuple[Any, ...] = ()
    #: The arguments of each `shred` since a test started; and the keys under a hold, by ledger.
    shreds: ClassVar[list[tuple[Any, ...]]] = []
    held: ClassVar[dict[str, set[str]]] = {}
    exchanges: ClassVar[int] = 2
    #: SHA-256 of the tombstone and of the erasure that must be in the auditor's log, if the log is required.
    tombstone: ClassVar[str] = ""
    erasure: ClassVar[str] = ""

    def __init__(self, state: str, begin: tuple[str, str] | None = None) -> None:
        self._file = Path(state) / "holds"
        if begin is not None:
            if self._file.exists():
                raise failure(
                    _core.KeepingError, "the retention job already has a state", "keeping_state_exists"
                )
            self._file.parent.mkdir(exist_ok=True)
            self._write([])
        if not self._file.exists():
            raise failure(_core.KeepingError, "the retention job's state is missing", "keeping_state_missing")

    def _write(self, holds: list[dict[str, Any]]) -> None:
        self._file.write_text(json.dumps(holds))

    def holds(self) -> str:
        return self._file.read_text()

    def add_hold(
        self, scope_json: str, why: tuple[str, str, str | None], now_us: int, name: str | None = None
    ) -> str:
        holds = json.loads(self.holds())
        hold = {"id": len(holds) + 1, "scope": json.loads(scope_json), **_told(why), "added": now_us}
        if name is not None:
            hold["name"] = name
        self._write([*holds, hold])
        return json.dumps(hold)

    def state_holds(self, ledger: str, ledger_key: str, signing_key: str, now_us: int) -> int:
        assert signing_key.startswith("PRIVATE+KEY+")
        assert now_us > 0
        RetentionState.stated = (ledger, ledger_key)
        return len(json.loads(self.holds()))

    def release_hold(self, number: int, why: tuple[str, str, str | None], now_us: int) -> str:
        holds = json.loads(self.holds())
        found = [hold for hold in holds if hold["id"] == number]
        if not found:
            raise failure(_core.KeepingError, f"hold {number} does not exist", "no_such_hold")
        found[0]["released"] = {"at": now_us, **_told(why)}
        self._write(holds)
        return json.dumps(found[0])

    def prune(
        self,
        ledger: str,
        ledger_key: str,
        signing_key: str,
        days: int,
        tenant_days: dict[str, int],
        why: tuple[str, str, str | None],
        against: list[tuple[str, str]],
        now_us: int,
        carry_out: bool,
        anchored: set[str] | None = None,
    ) -> str:
        assert signing_key.startswith("PRIVATE+KEY+")
        assert now_us > 0
        RetentionState.anchored = anchored
        RetentionState.pruned = (ledger, ledger_key, days, tenant_days, why, against, carry_out)
        if anchored is not None and RetentionState.tombstone and RetentionState.tombstone not in anchored:
            return json.dumps([LOG | _waits(RetentionState.tombstone), STAYS])
        return json.dumps(
            [LOG, STAYS, LOG | {"action": "finish", "left": ["salts"]}, LOG | {"action": "removed"}]
        )

    def erase(
        self,
        ledger: str,
        ledger_key: str,
        signing_key: str,
        exchange: str | None,
        tenant: tuple[str, int | None] | None,
        policy: tuple[int, dict[str, int]] | None,
        why: tuple[str, str, str | None],
        now_us: int,
        carry_out: bool,
        anchored: set[str] | None = None,
    ) -> str:
        assert signing_key.startswith("PRIVATE+KEY+")
        assert now_us > 0
        RetentionState.anchored = anchored
        RetentionState.erased = (ledger, ledger_key, exchange, tenant, policy, why, carry_out)
        log = {
            "origin": "a/0/X",
            "dir": "ledger/0/X",
            "action": "erase",
            "records": 81,
            "exchanges": 3,
            "reasons": [],
        }
        if anchored is not None and RetentionState.erasure and RetentionState.erasure not in anchored:
            return json.dumps([log | _waits(RetentionState.erasure)])
        if exchange is not None:
            return json.dumps([log | {"exchanges": 1}])
        return json.dumps(
            [log, log | {"action": "erased"}, log | {"action": "stay", "reasons": STAYS["reasons"]}]
        )

    def shred(
        self,
        ledger: str,
        ledger_key: str,
        signing_key: str,
        tenant: str,
        only: list[str] | None,
        there: list[str],
        policy: tuple[int, dict[str, int]] | None,
        why: tuple[str, str, str | None],
        now_us: int,
        carry_out: bool,
        anchored: set[str] | None = None,
    ) -> str:
        assert signing_key.startswith("PRIVATE+KEY+")
        assert now_us > 0
        RetentionState.anchored = anchored
        RetentionState.shreds.append((ledger, ledger_key, tenant, only, there, policy, why, carry_out))
        keys = sorted({*(only or ()), *(key for key in there if only is None or key in only)})
        held = RetentionState.held.get(ledger, set())
        return json.dumps(
            [
                {"key": key, "exchanges": self.exchanges, "action": "stay", "reasons": STAYS["reasons"]}
                if key in held
                else {"key": key, "exchanges": self.exchanges, "action": "destroy", "reasons": []}
                for key in keys
            ]
        )


def _waits(digest: str) -> dict[str, Any]:
    reason = {"code": "not_anchored", "text": "it is signed", "statement": digest}
    return {"action": "stay", "reasons": [reason]}


def _told(why: tuple[str, str, str | None]) -> dict[str, Any]:
    author, reason, ticket = why
    return {"author": author, "reason": reason} | ({} if ticket is None else {"ticket": ticket})

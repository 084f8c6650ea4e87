"""How receipts are requested and parsed; e2e/worker tests their proofs with the real core."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from signing import LEDGER, VKEY, Key

from proofgate.receipts import EvidenceError, GatewayResponse, Receipt, UrlSource, Witness, fetch
from proofgate.receipts.verified_receipt import Checkpoint

RECEIPT: dict[str, Any] = {
    "object": "receipt",
    "id": "req_1",
    "complete": True,
    "records": [{"kind": "admission", "index": 1, "record": "{}", "proof": "proof"}],
    "consistency": [{"origin": "a/0/X", "old": 1, "new": 2, "hashes": ["aGho" * 10 + "aGg="]}],
}


def refusal(status: int, code: str) -> GatewayResponse:
    error = {"error": {"message": "Not now.", "code": code}}
    return GatewayResponse(status, json.dumps(error).encode(), retry_after="0")


class Gateway:
    """Returns the answers in order, and then repeats the last one."""

    def __init__(self, *answers: GatewayResponse) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def get(self, path: str, timeout_seconds: float) -> GatewayResponse:
        assert timeout_seconds > 0
        self.asked.append(path)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def good(**changed: Any) -> GatewayResponse:
    return GatewayResponse(200, json.dumps({**RECEIPT, **changed}).encode(), retry_after="0")


def test_what_passes_by_itself_is_asked_again_and_an_exchange_without_its_end_as_well() -> None:
    gateway = Gateway(
        refusal(409, "receipt_pending"),
        refusal(503, "receipts_busy"),
        refusal(429, "requests_per_minute_exceeded"),
        good(complete=False),
        good(),
    )
    receipt, text = fetch(gateway, "req_1", 60)
    assert receipt.complete
    assert json.loads(text) == RECEIPT
    assert gateway.asked == ["/v1/receipts/req_1"] * 5


@pytest.mark.parametrize(
    ("asked", "made"),
    [("nan", 1), ("-1", 1), ("-inf", 1), ("soon", 1), (None, 1), ("0", 0), ("3", 3), ("inf", 5)],
)
def test_a_pause_that_nobody_can_make_is_a_second(
    monkeypatch: pytest.MonkeyPatch, asked: str | None, made: int
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    receipt, _ = fetch(Gateway(GatewayResponse(503, b"", retry_after=asked), good()), "req_1", 60)
    assert receipt.complete
    assert slept == [made]


@pytest.mark.parametrize("status", [404, 401, 403, 500])
def test_what_does_not_pass_is_told_at_once(status: int) -> None:
    gateway = Gateway(refusal(status, "some_code"))
    with pytest.raises(EvidenceError, match=r"no receipt for req_1: Not now. \[some_code\]"):
        fetch(gateway, "req_1", 60)
    assert len(gateway.asked) == 1


def test_when_the_time_is_over_the_last_answer_counts() -> None:
    with pytest.raises(EvidenceError, match="receipt_pending"):
        fetch(Gateway(refusal(409, "receipt_pending")), "req_1", 0)
    receipt, _ = fetch(Gateway(good(complete=False)), "req_1", 0)
    assert not receipt.complete


def test_an_id_and_what_is_held_cannot_leave_their_place_in_the_url() -> None:
    gateway = Gateway(good())
    fetch(gateway, "../a?b&c", held=Checkpoint("led.ger/x/0/X&since=1", 7, "root", "note"))
    assert gateway.asked == ["/v1/receipts/..%2Fa%3Fb%26c?since=7&origin=led.ger%2Fx%2F0%2FX%26since%3D1"]


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "null", '"receipt"', "{}", "[" * 100_000),
        *(json.dumps({**RECEIPT, left: None}) for left in ("id", "records", "consistency")),
        json.dumps({**RECEIPT, "records": []}),
        json.dumps({**RECEIPT, "records": [{"record": 1, "proof": "p"}]}),
        json.dumps({**RECEIPT, "consistency": [{"origin": "a", "old": 1, "new": 2, "hashes": ["c2hvcnQ="]}]}),
    ],
    ids=range(12),
)  # fmt: skip
def test_what_is_no_receipt_is_refused(text: str) -> None:
    with pytest.raises(EvidenceError, match="receipt"):
        Receipt.parse(text)


def test_a_url_and_a_key_that_cannot_be_used_are_told_without_the_key() -> None:
    for url, key in (
        ("ftp://x", "secret-key"),
        ("http://[", "secret-key"),
        ("http://127.0.0.1:9", "secret\nkey"),
    ):
        with pytest.raises(EvidenceError) as told:
            UrlSource(url, key).get("/v1/receipts/a", 1)
        assert "secret" not in str(told.value)


def test_a_witness_refuses_a_store_that_it_cannot_read(tmp_path: Path) -> None:
    store = tmp_path / "held"
    store.write_text(Key("other.dev").checkpoint("other.dev/0/X", 3, bytes(32)))
    with pytest.raises(EvidenceError, match="a checkpoint is refused"):
        Witness(VKEY, store).newest_checkpoints()
    notes = [LEDGER.checkpoint(f"{LEDGER.name}/0/{log}", 3, bytes(32)) for log in "AB"]
    store.write_text("".join(notes))
    held = Witness(VKEY, store).newest_checkpoints()
    assert [checkpoint.note for checkpoint in held.values()] == notes
    with pytest.raises(EvidenceError, match="cannot be opened"):
        Witness(VKEY, tmp_path / "nowhere" / "held").newest_checkpoints()

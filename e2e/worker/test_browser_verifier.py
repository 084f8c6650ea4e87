"""The verifier on the auditor's page accepts and refuses the same inputs as the native one."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import proofgate
import pytest
from proofgate import _core
from proofgate.receipts import EvidenceError, Receipt
from proofgate.receipts.verified_receipt import verify

from e2e.explored import exchange
from e2e.local_gateway import LEDGER, LocalGateway
from e2e.programs import Program, start_ready

SCRIPT = Path(__file__).parent / "explorer" / "ask.mjs"
STATIC = Path(proofgate.__file__).parent / "explorer" / "static"


class Verifier:
    """The verifier's module in a Node process."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def ask(self, question: str, *given: bytes | str | None) -> dict[str, Any]:
        texts = (argument.encode() if isinstance(argument, str) else argument for argument in given)
        line = [None if text is None else base64.b64encode(text).decode() for text in texts]
        answer: dict[str, Any] = json.loads(self._program.ask(json.dumps({"question": question, "given": line})))
        return answer


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verifier]:
    folder = tmp_path_factory.mktemp("verifier")
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    program, _ = start_ready(
        lambda: Program.start("verifier", folder, [str(SCRIPT), str(STATIC)], ["node"], **pipes),
        lambda program: program.wait_for_line("ready"),
    )
    yield Verifier(program)
    program.stop()


@pytest.fixture(scope="module")
def exchanged(gateway: LocalGateway) -> tuple[bytes, bytes, bytes]:
    for _ in range(3):  # more than one leaf, so that paths contain hashes
        exchange(gateway)
    return exchange(gateway)


def places(text: str) -> Iterator[int]:
    """For each line: the first byte, the last byte, the line end, and two bytes between."""
    start = 0
    for line in text.split("\n"):
        length = len(line.encode())
        yield from {start, start + length // 3, start + length // 2, start + max(0, length - 1), start + length}
        start += length + 1


def flipped(text: str) -> Iterator[str]:
    """Copies of the text with one changed byte, one for each tested place."""
    data = text.encode()
    for at in sorted(set(places(text))):
        if at < len(data) and data[at] < 0x80:
            yield (data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]).decode()


def takes(check: Callable[..., object], *given: object) -> bool:
    """Whether a native verifier accepts it."""
    try:
        check(*given)
    except (EvidenceError, _core.ProofgateError):
        return False
    return True


def test_one_changed_byte_of_record_proof_or_key_is_judged_as_the_native_verifier_judges_it(
    verifier: Verifier, gateway: LocalGateway, exchanged: tuple[bytes, bytes, bytes]
) -> None:
    key = gateway.verifying_key
    entry = json.loads(exchanged[2])["records"][-1]
    record, proof = entry["record"], entry["proof"]
    whole = verifier.ask("record_proof", record, proof, key)
    assert whole["ok"] and json.loads(_core.verify_proof(record.encode(), proof, key))["origin"] == gateway.origin
    cases = [(other, proof, key) for other in flipped(record)]
    cases += [(record, other, key) for other in flipped(proof)]
    cases += [(record, proof, other) for other in flipped(key)]
    cases += [(record, proof[:-1], key), (record + " ", proof, key), (record, f"{proof}\n", key), ("", proof, key)]
    taken = 0
    for case in cases:
        expected = takes(_core.verify_proof, case[0].encode(), *case[1:])
        answer = verifier.ask("record_proof", *case)
        assert answer["ok"] is expected, (case, answer)
        taken += expected
    # Two parts are not authenticated: the salt, and the name in a line of another key.
    assert len(cases) > 45 and taken < 8


def test_a_changed_checkpoint_is_refused_with_the_code_of_what_is_wrong(
    verifier: Verifier, gateway: LocalGateway
) -> None:
    note, key = gateway.admin_text("/checkpoint"), gateway.verifying_key
    origin, size, root = note.split("\n")[:3]
    assert verifier.ask("checkpoint", note, key) == {"ok": True, "origin": origin, "size": size, "root": root}
    for other in flipped(note):
        assert not takes(_core.verify_checkpoint, other, key)
        assert verifier.ask("checkpoint", other, key)["ok"] is False
    _, stranger = _core.generate_key(LEDGER)
    assert verifier.ask("checkpoint", note, stranger)["error"]["code"] == "unsigned"
    _, elsewhere = _core.generate_key("elsewhere.example")
    assert verifier.ask("checkpoint", note, elsewhere)["error"]["code"] == "other_origin"


def changes(receipt: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Copies of the receipt, each with one change."""
    text = json.dumps(receipt)
    for other in flipped(receipt["id"]):
        yield {**receipt, "id": other}
    for number, part in ((0, "record"), (0, "proof"), (1, "record"), (1, "proof")):
        for other in list(flipped(receipt["records"][number][part]))[::3]:
            copy = json.loads(text)
            copy["records"][number][part] = other
            yield copy
    for records in ([0], [1], [0, 0, 1], [1, 1], [0, 1, 1], []):
        yield {**receipt, "records": [receipt["records"][number] for number in records]}
    yield {**receipt, "consistency": None}
    yield {name: value for name, value in receipt.items() if name != "records"}


def test_a_receipt_with_one_thing_changed_is_judged_as_the_receipts_command_judges_it(
    verifier: Verifier, gateway: LocalGateway, exchanged: tuple[bytes, bytes, bytes]
) -> None:
    request, response, text = exchanged
    key = gateway.verifying_key
    digests = [hashlib.sha256(body).digest() for body in (request, response)]
    verify(Receipt.parse(text.decode()), key, *digests)
    assert verifier.ask("receipt", text, key, request, response)["ok"] is True
    assert verifier.ask("receipt", text, key, None, None)["ok"] is True
    assert verifier.ask("receipt", text, key, response, request)["ok"] is False

    def command(judged: str) -> None:
        verify(Receipt.parse(judged), key)

    for changed in changes(json.loads(text)):
        judged = json.dumps(changed)
        expected = takes(command, judged)
        answer = verifier.ask("receipt", judged, key, None, None)
        if len(changed.get("records", "")) == 1:
            # The command accepts a receipt without its end. If the receipt still claims to be complete, it does not
            # verify here.
            assert answer["ok"] is False
        else:
            assert answer["ok"] is expected, (answer, judged)


def test_what_cannot_be_asked_is_refused_and_the_next_question_is_answered(
    verifier: Verifier, gateway: LocalGateway
) -> None:
    assert verifier.ask("nothing")["error"]["code"] == "verifier_failed"
    assert verifier.ask("checkpoint", "one")["error"]["code"] == "arguments"
    assert verifier.ask("checkpoint", b"\xff", gateway.verifying_key)["error"]["code"] == "arguments"
    assert verifier.ask("receipt", "[" * 100_000, gateway.verifying_key, None, None)["error"]["code"] == "receipt"
    note = gateway.admin_text("/checkpoint")
    assert verifier.ask("checkpoint", note, gateway.verifying_key)["ok"] is True

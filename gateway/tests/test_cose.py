"""COSE receipts and signed statements, verified by a third-party library."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import cbor2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from recorded_exchange import Recorded, recorded, recorded_once
from scitt_cose import receipt as scitt  # type: ignore[import-untyped]
from scitt_cose.statement import parse_signed_statement  # type: ignore[import-untyped]
from signing import AUDITOR, LEDGER, VKEY, Key

from proofgate import _core
from proofgate.cli import main
from proofgate.cose.cbor import Tagged, encode
from proofgate.cose.note_key import NoteKey, public_key
from proofgate.exit_codes import ExitCode

__all__ = ["recorded", "recorded_once"]

Capture = pytest.CaptureFixture[str]
KINDS = ("admission", "completion")


def pem(key: Key) -> bytes:
    """The public key in the format of other tools."""
    public = Ed25519PublicKey.from_public_bytes(public_key(key.verifying))
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def key_file(directory: Path, key: Key) -> Path:
    path = directory / f"{key.name.rpartition('/')[2]}-key"
    path.write_text(f"{key.signing}\n")
    return path


@pytest.fixture
def receipt(recorded: Recorded, tmp_path: Path) -> Path:
    """The receipt of the recorded exchange, in the gateway's format."""
    proven = json.loads(_core.prove(str(recorded.ledger), recorded.request_id, VKEY))
    path = tmp_path / "req.receipt.json"
    document = {"object": "receipt", "id": recorded.request_id, "complete": True, "consistency": []}
    path.write_text(json.dumps(document | {"records": proven["records"]}))
    return path


def to_cose(receipt: Path, key: Key, vkey: str = VKEY) -> int:
    signing = key_file(receipt.parent, key)
    return main(["receipt", str(receipt), "--format", "cose", "--key", vkey, "--signing-key", str(signing)])


def check(receipt: Path, kind: str, key: Key, record: bytes | None = None) -> scitt.ReceiptResult:
    leaf = receipt.with_name(f"req.{kind}.json").read_bytes() if record is None else record
    message = receipt.with_name(f"req.{kind}.cose").read_bytes()
    return scitt.verify_receipt(message, leaf_entry_hex=leaf.hex(), log_public_key_pem=pem(key))


@pytest.mark.parametrize("key", [LEDGER, AUDITOR], ids=["ledger", "auditor"])
def test_an_independent_library_verifies_the_cose_receipt_of_every_record(
    receipt: Path, recorded: Recorded, key: Key
) -> None:
    assert to_cose(receipt, key) == 0
    by_kind = {entry["kind"]: entry for entry in json.loads(receipt.read_text())["records"]}
    for kind in KINDS:
        result = check(receipt, kind, key)
        assert result.ok, result.errors
        assert receipt.with_name(f"req.{kind}.json").read_text() == by_kind[kind]["record"]
        assert result.leaf_index == json.loads(by_kind[kind]["record"])["seq"]
        assert (result.issuer, result.subject) == (key.name, recorded.origin)
        note = by_kind[kind]["proof"].split("\n\n", 1)[1]
        assert json.loads(_core.verify_checkpoint(note, VKEY))["size"] == result.tree_size
        assert result.protected_header_ext == {4: bytes.fromhex(key.verifying.split("+")[1])}


def test_another_record_another_key_and_a_changed_proof_do_not_verify(receipt: Path) -> None:
    assert to_cose(receipt, AUDITOR) == 0
    record = receipt.with_name("req.admission.json").read_bytes()
    assert not check(receipt, "admission", AUDITOR, record + b" ").ok
    assert not check(receipt, "admission", LEDGER).ok
    path = receipt.with_name("req.admission.cose")
    message: Any = cbor2.loads(path.read_bytes()).value
    size, index, nodes = cbor2.loads(message[1][396][-1][0])
    moved = {396: {-1: [cbor2.dumps([size, index + 1, list(nodes)])]}}
    path.write_bytes(cbor2.dumps(cbor2.CBORTag(18, [message[0], moved, None, message[3]])))
    assert not check(receipt, "admission", AUDITOR).ok


def test_the_command_says_whose_signature_it_is(receipt: Path, capsys: Capture) -> None:
    assert to_cose(receipt, LEDGER) == 0
    assert f"signed by: {LEDGER.name} (key " in (said := capsys.readouterr().out)
    assert "), a key of the ledger\n" in said
    assert to_cose(receipt, AUDITOR) == 0
    said = capsys.readouterr().out
    assert f"verified: the receipt, under the key of {LEDGER.name}\n" in said
    assert "), not a key of the ledger\n" in said
    assert f"The ledger's signature is in {receipt}." in said


def test_the_key_that_follows_the_ledgers_key_is_a_key_of_the_ledger(receipt: Path, capsys: Capture) -> None:
    newer = Key(LEDGER.name, bytes([8]) * 32)
    document = json.loads(receipt.read_text())
    document["key_successions"] = [_core.sign_key_succession(LEDGER.signing, newer.signing, 1, 1 << 52)]
    receipt.write_text(json.dumps(document))
    assert to_cose(receipt, newer) == 0
    assert "), a key of the ledger\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", [LEDGER.name, f"{LEDGER.name}/0", LEDGER.name.rpartition("/")[0]])
def test_a_foreign_key_that_could_be_taken_for_the_ledger_signs_nothing(
    receipt: Path, name: str, capsys: Capture
) -> None:
    assert to_cose(receipt, Key(name, bytes([8]) * 32)) == 2
    assert "could be mistaken for" in capsys.readouterr().err
    assert not list(receipt.parent.glob("*.cose"))


def test_nothing_is_signed_of_a_receipt_that_does_not_verify(receipt: Path, capsys: Capture) -> None:
    other = Key("other.dev/ledger")
    assert to_cose(receipt, AUDITOR, other.verifying) == ExitCode.ANOTHER_KEY
    receipt.write_text(receipt.read_text().replace("acme", "evil"))
    assert to_cose(receipt, AUDITOR) == 40
    assert "nothing was signed" in capsys.readouterr().err
    assert not list(receipt.parent.glob("*.cose"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["req_1"],
        ["req_1", "--url", "http://127.0.0.1:9"],
        ["r.json", "--format", "cose", "--key", VKEY],
        ["r.json", "--format", "cose", "--signing-key", "k"],
        ["r.json", "--format", "cose", "--key", VKEY, "--signing-key", "k", "--out", "x"],
        ["req_1", "--url", "http://127.0.0.1:9", "--api-key-file", "k", "--key", VKEY],
    ],
    ids=range(6),
)
def test_arguments_that_do_not_go_together_are_refused_before_anything_is_asked(
    arguments: list[str], capsys: Capture
) -> None:
    assert main(["receipt", *arguments]) == 2
    assert "--" in capsys.readouterr().err


def test_a_file_that_is_no_signing_key_is_refused_and_not_repeated(tmp_path: Path) -> None:
    for text in (VKEY, LEDGER.signing[:-4], "secret", f"SIGNER {LEDGER.signing} /x", "SIGNER", "\xff\0"):
        path = tmp_path / "signing-key"
        path.write_text(text)
        with pytest.raises(Exception, match="contains no signing key") as told:
            NoteKey.read(path)
        assert text not in str(told.value)
    assert LEDGER.secret not in repr(NoteKey.read(key_file(tmp_path, LEDGER)))


def test_an_external_signer_signs_and_a_refusal_is_an_error(tmp_path: Path) -> None:
    path, answers = tmp_path / "socket", [True, False]
    (tmp_path / "signer-key").write_text(f"SIGNER {AUDITOR.verifying} {path}\n")
    key = NoteKey.read(tmp_path / "signer-key")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection, connection.makefile("rb") as question:
                    vkey = question.read(int.from_bytes(question.read(2), "big"))
                    message = question.read(int.from_bytes(question.read(4), "big"))
                    assert vkey.decode() == AUDITOR.verifying
                    signature = Ed25519PrivateKey.from_private_bytes(AUDITOR.seed).sign(message)
                    connection.sendall(b"\0" + signature if answer else b"\x01\0\x02no")

        thread = threading.Thread(target=serve)
        thread.start()
        assert key.sign(b"text") == NoteKey.read(key_file(tmp_path, AUDITOR)).sign(b"text")
        with pytest.raises(Exception, match="refuses to sign"):
            key.sign(b"text")
        thread.join()
    path.unlink()
    with pytest.raises(Exception, match="does not sign"):
        key.sign(b"text")


def state(recorded: Recorded, key: Key, out: Path) -> int:
    checkpoint, signing = recorded.log / "checkpoint", key_file(out.parent, key)
    arguments = ["--key", VKEY, "--signing-key", str(signing), "--out", str(out)]
    return main(["ledger", "statement", str(checkpoint), *arguments])


@pytest.mark.parametrize("key", [LEDGER, AUDITOR], ids=["ledger", "auditor"])
def test_a_tree_head_is_a_signed_statement_that_an_independent_library_verifies(
    recorded: Recorded, tmp_path: Path, key: Key, capsys: Capture
) -> None:
    out = tmp_path / "head.cose"
    assert state(recorded, key, out) == 0
    whose = "a key of" if key is LEDGER else "not a key of"
    assert f"signed by: {key.name} (key {key.verifying.split('+')[1]}), {whose} {LEDGER.name}" in (
        capsys.readouterr().out
    )
    found = parse_signed_statement(out.read_bytes(), public_key_pem=pem(key))
    assert found["signature_verified"] is True
    assert (found["issuer"], found["subject"]) == (key.name, recorded.origin)
    assert found["content_type"] == "text/plain;charset=utf-8"
    # The payload contains the ledger's own signature.
    assert json.loads(_core.verify_checkpoint(found["payload"].decode(), VKEY))["origin"] == recorded.origin
    other = AUDITOR if key is LEDGER else LEDGER
    assert (
        parse_signed_statement(out.read_bytes(), public_key_pem=pem(other))["signature_verified"] is not True
    )


def test_no_statement_is_signed_of_a_checkpoint_that_does_not_verify(
    recorded: Recorded, tmp_path: Path, capsys: Capture
) -> None:
    checkpoint = recorded.log / "checkpoint"
    checkpoint.write_text(checkpoint.read_text().replace("\n", "\n1", 1))
    assert state(recorded, AUDITOR, tmp_path / "head.cose") == 40
    assert "not verified" in capsys.readouterr().err
    assert not (tmp_path / "head.cose").exists()


_scalars = st.none() | st.integers(-(1 << 64), (1 << 64) - 1) | st.binary() | st.text()


@given(st.recursive(_scalars, st.lists, max_leaves=8))
def test_what_is_encoded_is_what_another_encoder_makes_of_it(value: Any) -> None:
    assert encode(value) == cbor2.dumps(value)


@given(st.dictionaries(st.integers(-70_000, 70_000), _scalars))
def test_a_map_is_read_by_another_decoder_as_it_was(value: dict[int, Any]) -> None:
    assert dict(cbor2.loads(encode(value))) == value
    assert encode(dict(reversed(value.items()))) == encode(value)


def test_the_labels_of_a_map_are_in_the_order_of_their_encodings() -> None:
    assert encode({-1: 1, 24: 2, 1: 3}).hex() == "a3" + "0103" + "181802" + "2001"
    assert encode(Tagged(18, [b"", {}, None])).hex() == "d2" + "83" + "40" + "a0" + "f6"
    with pytest.raises(ValueError, match="64 bits"):
        encode(1 << 64)

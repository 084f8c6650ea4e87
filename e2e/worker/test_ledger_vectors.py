"""The vectors of docs/reference/ledger-format.md follow from its text; the core reads and signs the same bytes."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from proofgate import _core

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def vectors() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS / "ledger-vectors.json").read_text())
    return found


def placed(folder: Path, segment: dict[str, Any], content: bytes) -> Path:
    """A log that contains only one segment."""
    log = folder / "0" / str(segment["incarnation"])
    log.mkdir(parents=True)
    (log / str(segment["file"])).write_bytes(content)
    return log


def test_the_vectors_are_up_to_date() -> None:
    subprocess.run([sys.executable, str(DOCS / "generate_ledger_vectors.py"), "--check"], check=True)


def test_the_core_reads_the_records_of_the_segment(vectors: dict[str, Any], tmp_path: Path) -> None:
    segment = vectors["segment"]
    log = placed(tmp_path, segment, bytes.fromhex(segment["hex"]))
    assert _core.export_leaves(str(log), str(tmp_path / "leaves")) == 3
    leaves = (tmp_path / "leaves").read_bytes()
    assert all(record.encode() in leaves for record in segment["records"])


def test_the_core_refuses_the_segment_with_any_byte_of_a_record_changed(
    vectors: dict[str, Any], tmp_path: Path
) -> None:
    segment = vectors["segment"]
    content = bytearray.fromhex(segment["hex"])
    end = len(content) - 64
    for number, at in enumerate(range(0, end, 7)):
        changed = bytes(content[:at]) + bytes([content[at] ^ 1]) + bytes(content[at + 1 :])
        log = placed(tmp_path / str(number), segment, changed)
        try:
            read = _core.export_leaves(str(log), str(tmp_path / str(number) / "leaves"))
        except _core.ProofgateError:
            continue
        assert read < 3, at


def test_the_core_and_the_one_file_verifier_open_the_denied_request(vectors: dict[str, Any], tmp_path: Path) -> None:
    told = vectors["denial"]
    record, body = told["record"].encode(), told["body"].encode()
    _core.verify_proof(record, told["proof"], told["vkey"])
    _core.reveal_digest(record, told["proof"], told["vkey"], hashlib.sha256(body).digest())
    with pytest.raises(_core.ProofError):
        _core.reveal_digest(record, told["proof"], told["vkey"], hashlib.sha256(body + b" ").digest())
    for name in ("record", "body", "proof"):
        (tmp_path / name).write_bytes(told[name].encode())
    verify = [sys.executable, str(DOCS.parent / "examples" / "verify" / "verify.py"), "proof", "--key", told["vkey"]]
    done = subprocess.run(
        [*verify, "--record", "record", "--body", "body"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "is this rejection of req_01" in done.stdout and "body is its request, byte for byte" in done.stdout


def test_the_core_verifies_the_note_of_the_export(vectors: dict[str, Any]) -> None:
    told = vectors["export_note"]
    digest = hashlib.sha256(told["manifest"].encode()).digest()
    _core.verify_export(told["note"], told["vkey"], digest)
    with pytest.raises(_core.ProofError):
        _core.verify_export(told["note"], told["vkey"], bytes(32))

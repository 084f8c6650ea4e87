"""Receipts with an omitted or repeated record: both verifiers report what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE_SECONDS
from index_ledger import NOON, Log, bring_up, own_id
from signing import VKEY

from proofgate.cli import main
from proofgate.index.query import IndexSnapshot
from proofgate.index.stored_records import receipt

Capture = pytest.CaptureFixture[str]
Verifier = Callable[[Path], tuple[int, str]]
VERIFY = Path(__file__).parents[2] / "examples" / "verify" / "verify.py"
PROVIDERS = ("azure", "elsewhere")


@pytest.fixture(params=["command", "second"])
def verifier(request: pytest.FixtureRequest, capsys: Capture) -> Verifier:
    def command(path: Path) -> tuple[int, str]:
        code = main(["verify", str(path), "--key", VKEY])
        told = capsys.readouterr()
        return code, told.out + told.err

    def second(path: Path) -> tuple[int, str]:
        arguments = [sys.executable, "-I", "-S", str(VERIFY), str(path), "--key", VKEY]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        return done.returncode, done.stdout + done.stderr

    return {"command": command, "second": second}[request.param]


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, Any]:
    """The receipt of an exchange that was sent to three providers, one after the other."""
    log = Log(tmp_path / "ledger")
    admission = log.admit(1, NOON)
    for number, provider in enumerate(PROVIDERS, 2):
        log.add("attempt", NOON, id=own_id(1, NOON), admission=admission, attempt=number, provider=provider)
    log.complete(1, admission, NOON, attempts=3)
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger", 100)
    with IndexSnapshot(tmp_path / "index", PATIENCE_SECONDS) as questions:
        row = questions.find(own_id(1, NOON), None)
        assert row is not None
        return receipt(questions, tmp_path / "ledger", row)


def verified(verifier: Verifier, folder: Path, receipt: dict[str, Any]) -> tuple[int, str]:
    path = folder / "receipt.json"
    path.write_text(json.dumps(receipt))
    return verifier(path)


def test_a_whole_receipt_has_all_attempts(verifier: Verifier, tmp_path: Path, whole: dict[str, Any]) -> None:
    code, told = verified(verifier, tmp_path, whole)
    assert (code, "attempts" in told) == (0, False), told


@pytest.mark.parametrize("left_out", [[1], [2], [1, 2]])
def test_attempts_that_were_left_out_of_a_receipt_are_counted(
    verifier: Verifier, tmp_path: Path, whole: dict[str, Any], left_out: list[int]
) -> None:
    records = [record for number, record in enumerate(whole["records"]) if number not in left_out]
    code, told = verified(verifier, tmp_path, whole | {"records": records})
    assert code == 0
    assert f"not shown: {len(left_out)} of 3 attempts; the receipt lacks their records" in told.splitlines()


def test_without_the_end_nobody_knows_how_many_attempts_there_were(
    verifier: Verifier, tmp_path: Path, whole: dict[str, Any]
) -> None:
    _, told = verified(verifier, tmp_path, whole | {"records": whole["records"][:1]})
    assert "not shown: how the exchange ended, and whether there were more attempts" in told


@pytest.mark.parametrize("repeated", range(4))
def test_a_receipt_with_a_record_twice_is_refused(
    verifier: Verifier, tmp_path: Path, whole: dict[str, Any], repeated: int
) -> None:
    records = [*whole["records"], whole["records"][repeated]]
    code, told = verified(verifier, tmp_path, whole | {"records": records})
    assert code in (1, 40)
    assert "not verified" in told.lower()

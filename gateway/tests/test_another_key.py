"""The code of a refusal, and not its message, distinguishes a wrong key from changed data."""

from __future__ import annotations

from typing import Any

import pytest

from proofgate.another_key import EXPLANATION, key_mismatch_verdict, with_explanation
from proofgate.evidence import UNREADABLE_VERDICT, VERDICTS, render_report
from proofgate.exit_codes import ExitCode, fail

OWN, GIVEN = "proofgate.dev/a+11111111+AQID", "proofgate.dev/b+22222222+AQID"


def report(*findings: dict[str, Any]) -> dict[str, Any]:
    """A report on one log with a refused checkpoint."""
    log = {"checkpoint": "bad", "key": OWN, "findings": [{"verdict": "invalid"} | one for one in findings]}
    return {"incarnations": [log], "findings": []}


@pytest.mark.parametrize("message", ["whatever it is", "the note is not signed by x"])
def test_the_code_decides_and_not_the_words(message: str) -> None:
    assert with_explanation(f"{message} [another_key]") == f"{message} [another_key]\n{EXPLANATION}"
    assert with_explanation(f"{message} [ledger_refused]") == f"{message} [ledger_refused]"
    told = key_mismatch_verdict(report({"code": "another_key", "message": message}), GIVEN)
    assert told is not None
    assert told.startswith("another key: the logs name proofgate.dev/a+11111111 as their key")
    assert key_mismatch_verdict(report({"message": message}), GIVEN) is None
    # A log that the given key signed shows that the key is right, and that the other log was added.
    added = report({"code": "another_key", "message": message})
    added["incarnations"].append({"checkpoint": "verified", "key": GIVEN, "findings": []})
    assert key_mismatch_verdict(added, GIVEN) is None
    other = {"code": "tombstone_refused", "message": message}
    assert key_mismatch_verdict(report({"code": "another_key", "message": message}, other), GIVEN) is None


@pytest.mark.parametrize(
    ("message", "code", "expected"),
    [
        ("not verified: no signature [another_key]", ExitCode.INVALID, ExitCode.ANOTHER_KEY),
        ("no signature [another_key]", ExitCode.USAGE, ExitCode.ANOTHER_KEY),
        ("not verified: the root differs [proof]", ExitCode.INVALID, ExitCode.INVALID),
        # A worker that cannot start gives no verdict on evidence.
        ("no signature [another_key]", ExitCode.FAILED, ExitCode.FAILED),
    ],
)
def test_another_key_has_an_exit_code_of_its_own(message: str, code: int, expected: int) -> None:
    assert fail(message, code) == expected


def test_a_log_that_cannot_be_read_is_not_said_to_have_been_changed() -> None:
    bad_sector = {"verdict": "invalid", "code": "unreadable", "message": "Input/output error"}
    behind = {"verdict": "incomplete", "message": "records are not covered by a checkpoint"}
    changed = {"verdict": "invalid", "message": "a checksum differs"}
    for of_log, of_ledger, told in (
        ([bad_sector, behind], [], UNREADABLE_VERDICT),
        ([behind], [bad_sector], UNREADABLE_VERDICT),
        ([bad_sector], [changed], VERDICTS[40]),
        ([bad_sector, changed], [], VERDICTS[40]),
        ([], [], VERDICTS[40]),
    ):
        found = {"incarnations": [{"findings": of_log}], "findings": of_ledger}
        assert render_report(40, found).splitlines()[-1] == told


def test_a_name_of_a_file_forges_no_line_of_a_report() -> None:
    forged = report({"code": "refused", "message": "key-successions/x.note\nverified\x1b[2J: it is no note"})
    lines = render_report(40, forged).splitlines()
    assert "verified" not in [line.strip() for line in lines]
    assert any("x.note\\nverified\\x1b[2J: it is no note" in line for line in lines)

"""Refusal codes that are denials by policy: only the core has the list."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from index_ledger import NOON, Log, bring_up, own_id

from proofgate import _core
from proofgate.index.denials import effective_verdict
from proofgate.index.query import IndexSnapshot
from proofgate.index.schema import DENIED, REFUSED
from proofgate.index.stored_records import receipt

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "gateway/src/proofgate/explorer/static"
RECORDS = ROOT / "docs/reference/records.md"


def test_refusals_with_the_codes_of_the_core_are_denials_and_no_others_are() -> None:
    codes = _core.denial_codes()
    assert "policy_blocked" in codes
    assert len(set(codes)) == len(codes)
    assert {effective_verdict(REFUSED, code) for code in codes} == {DENIED}
    for code in ("rate_limited", "unauthorized", "policy_", None):
        assert effective_verdict(REFUSED, code) == REFUSED


def test_the_reference_lists_the_codes_of_the_core() -> None:
    [listed] = re.findall(r"its\s`code`\sis\s(.*?)\.\sIts\s`rejection`", RECORDS.read_text(), re.DOTALL)
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(_core.denial_codes())


def test_the_explorer_has_no_list_of_its_own() -> None:
    scripts = "".join(path.read_text() for path in STATIC.glob("*.js"))
    # A denied response has an outcome with the same name.
    assert [code for code in _core.denial_codes() if f'"{code}"' in scripts] == ["policy_blocked"]


@pytest.mark.parametrize(("code", "denied"), [("policy_unavailable", True), ("rate_limited", False)])
def test_a_receipt_from_the_auditors_port_says_whether_the_request_was_denied(
    tmp_path: Path, code: str, denied: bool
) -> None:
    log = Log(tmp_path / "ledger")
    log.refuse(1, NOON, code=code)
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger")
    with IndexSnapshot(tmp_path / "index") as questions:
        row = questions.find(own_id(1, NOON), None)
        assert row is not None
        found = receipt(questions, tmp_path / "ledger", row)
    assert found["denied"] is denied
    assert "denied" not in json.loads(found["records"][0]["record"])

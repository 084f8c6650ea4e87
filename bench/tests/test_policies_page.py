"""Tests of the rules on the page of policy packs."""

from __future__ import annotations

from bench.report import policies
from bench.scoring.rules import load_packs


def test_every_rule_stands_in_the_page_with_its_reason() -> None:
    table = policies.rules({})
    assert [rule.id for rule in load_packs() if f"| `{rule.id}` |" not in table or rule.reason not in table] == []

"""Requirements for every built-in rule."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from bench.scoring.checks import CHECKS
from bench.scoring.reference import THRESHOLD, Reference
from bench.scoring.rules import Rule, load_pack, load_packs, pack_names

RULES = load_packs()
BY_ID = [pytest.param(rule, id=rule.id) for rule in RULES]


def test_ids_are_unique_and_kebab_case() -> None:
    assert [rule for rule, count in Counter(rule.id for rule in RULES).items() if count > 1] == []
    assert [rule.id for rule in RULES if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.id)] == []


@pytest.mark.parametrize("rule", BY_ID)
def test_a_rule_matches_its_examples_and_passes_its_near_misses(rule: Rule) -> None:
    assert len(rule.matching) >= 2 and len(rule.not_matching) >= 2
    reference = Reference([rule])
    for direction in rule.directions:
        assert [text for text in rule.matching if not reference.scan(text, direction)] == []
        assert [text for text in rule.not_matching if reference.scan(text, direction)] == []


@pytest.mark.parametrize("rule", BY_ID)
def test_a_rule_is_complete(rule: Rule) -> None:
    assert rule.reason.endswith(".") and rule.reason[0].isupper()
    assert 0 <= rule.score <= 1000
    assert rule.check is None or rule.check in CHECKS
    assert rule.literals or rule.regex
    assert [literal for literal in rule.literals if literal != literal.lower()] == []


@pytest.mark.parametrize("rule", BY_ID)
def test_a_flag_alone_never_denies(rule: Rule) -> None:
    assert rule.score >= THRESHOLD if rule.action == "block" else rule.score < THRESHOLD


def test_personal_data_alone_is_never_denied() -> None:
    assert sum(rule.score for rule in load_pack("pii")) < THRESHOLD
    assert {rule.action for rule in load_pack("pii")} == {"redact"}


def test_all_packs_are_there() -> None:
    expected = ["exfiltration", "jailbreak", "obfuscation", "pii", "prompt-injection", "secrets"]
    assert pack_names() == expected
    assert len(RULES) >= 52

"""The generated parts of the page."""

from __future__ import annotations

import pytest

from bench.scoring import page
from bench.scoring.rules import load_packs


def test_the_page_is_that_of_these_packs_and_results() -> None:
    assert page.fill(page.PAGE.read_text()) == page.PAGE.read_text()


def test_every_rule_stands_in_the_page_with_its_reason() -> None:
    table = page.rules()
    assert [rule.id for rule in load_packs() if f"| `{rule.id}` |" not in table or rule.reason not in table] == []


def test_a_page_without_a_place_for_a_section_is_refused() -> None:
    with pytest.raises(ValueError, match="places for"):
        page.fill("# Policy packs\n")

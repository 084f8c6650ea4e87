"""`docs/check_claims.py`: numbers and comparisons on three pages have a source, and those without one are found."""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from docs import check_claims
from docs.check_claims import COMPARISON, COMPLIANCE, PAGES, README, problems, tables

ROOT = Path(__file__).resolve().parents[2]
RESULT = "bench/results/data-plane.json"
CLAIM: dict[str, Any] = {"page": README, "text": "in 5 minutes", "source": "make run"}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copies of the pages and of the files that they refer to, which tests change."""
    for name in (*PAGES, "docs/claims.toml", "Makefile", RESULT, "e2e/worker/test_limits.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_every_number_and_comparison_has_its_source() -> None:
    assert list(problems(ROOT)) == []


def test_the_readme_compares_ten_things_and_tells_what_is_lost() -> None:
    [table] = [table for table in tables((ROOT / README).read_text()) if "LiteLLM 1.110" in table[0]]
    assert len(table) == 11
    lost = [row[0] for row in table[1:] if row[1] == "no" and "yes" in row[2:] and not row[0].startswith("needs")]
    assert len(lost) >= 2


@pytest.mark.parametrize(
    ("name", "old", "new", "found"),
    [
        (README, "in about 6 minutes", "in about 3 minutes", "no entry of docs/claims.toml for 3"),
        (README, "| needs a database or Redis | no |", "| needs a database or Redis | yes |", "not as in"),
        (README, "| agentgateway 1.7 |", "| agentgateway 1.8 |", "a column is not in"),
        (COMPARISON, "## What others", "12,000 others\n\n## What others", "no entry of docs/claims.toml for 12,000"),
        (COMPARISON, "| [clients](clients/README.md): `make test-agents` |", "| - |", "no source for the row tested"),
        (COMPARISON, "- **AISIX 0.11**", "- **AISIX 0.10**", "no source for the column AISIX 0.11"),
        (COMPARISON, "2. Read on 28 November 2026", "2. Read", "no dated source [2]"),
        (COMPARISON, ", read on 26 November 2026", "", "do not say when they were read"),
        (COMPLIANCE, "## Statements", "It applies from 2 December 2027.\n\n## Statements", "without an address"),
        (COMPLIANCE, "## Statements", "| a | command |\n|---|---|\n| b | - |\n\n## Statements", "no command for b"),
        (RESULT, '"median": 19004.83', '"median": 18004.83', "has [18005"),
        ("Makefile", "\nbench: ", "\nbenches: ", "no target bench"),
    ],
)
def test_what_has_no_source_is_found(copy: Path, name: str, old: str, new: str, found: str) -> None:
    change(copy / name, old, new)
    wrong = list(problems(copy))
    assert any(found in line for line in wrong), wrong


@pytest.mark.parametrize(
    ("claim", "found"),
    [
        ({**CLAIM, "source": "make nothing"}, "no target nothing"),
        ({**CLAIM, "source": "https://example.com"}, "the day it was read"),
        ({**CLAIM, "source": "I believe so"}, "neither a make target"),
        ({**CLAIM, "source": "e2e/worker/test_limits.py::test_nothing"}, "no test test_nothing"),
        ({**CLAIM, "source": "https://example.com", "read": date(2026, 11, 28)}, None),
        ({**CLAIM, "source": "e2e/worker/test_limits.py"}, None),
        (CLAIM, None),
    ],
)
def test_a_source_can_be_found_again(claim: dict[str, Any], found: str | None) -> None:
    wrong = check_claims.wrong_source(ROOT, claim)
    assert wrong is None if found is None else wrong is not None and found in wrong


def test_an_entry_whose_text_is_gone_is_found() -> None:
    assert list(check_claims.unclaimed_numbers("a page", "Nothing.", [CLAIM])) == [
        "a page: an entry of docs/claims.toml is not on the page: in 5 minutes"
    ]


def test_code_addresses_and_numbers_without_a_unit_are_no_claims() -> None:
    page = "RFC 6962, `5 minutes`, [a page](5%s), version 1.30\n\n```console\n$ wait 5 seconds\n```\n"
    assert list(check_claims.unclaimed_numbers("a page", page, [])) == []


def test_a_value_is_compared_with_as_many_digits_as_are_shown(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"a": {"b": 1.26}, "c": 0.331}))
    assert check_claims.differs(tmp_path, {"text": "1.3 or more", "result": "r.json#a/b"}) is None
    assert check_claims.differs(tmp_path, {"text": "1.2", "result": "r.json#a/b"}) == "r.json has [1.3]"
    assert check_claims.differs(tmp_path, {"text": "33 %", "result": "r.json#c", "times": 100}) is None

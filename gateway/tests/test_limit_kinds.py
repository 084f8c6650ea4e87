"""The core's table of limits, the schema and the reference name the same limits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from proofgate_schema.terms import ModelBudget, Quota
from pydantic import ValidationError

from proofgate.limit_kinds import LIMIT_KINDS, LimitKind

REFERENCE = Path(__file__).parents[2] / "docs/reference/limits.md"
TIMES = {"minute": "any 60 seconds", "day": "a UTC day", "month": "a UTC month", "now": "this moment"}


def test_the_schema_has_a_field_for_each_limit_of_the_core_and_no_other() -> None:
    assert sorted(Quota.model_fields) == sorted(kind.name for kind in LIMIT_KINDS)
    assert ModelBudget.model_fields.keys() - {"model"} <= {kind.name for kind in LIMIT_KINDS if kind.is_money}


@pytest.mark.parametrize("kind", LIMIT_KINDS, ids=lambda kind: kind.name)
def test_money_is_an_amount_and_everything_else_a_number(kind: LimitKind) -> None:
    alias = Quota.model_fields[kind.name].alias
    right, wrong = ("2.5", 7) if kind.is_money else (7, "2.5")
    quota = Quota.model_validate({alias: right})
    assert quota.has_budget is kind.is_money
    assert quota.to_document() == {kind.alias: right}
    with pytest.raises(ValidationError):
        Quota.model_validate({alias: wrong})


def test_the_reference_lists_each_limit() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \| `(\w+)` \| `([\w-]+)` \|$", REFERENCE.read_text(), re.M)
    assert rows == [
        (Quota.model_fields[kind.name].alias, TIMES[kind.period], kind.code, policy(kind))
        for kind in LIMIT_KINDS
    ]


def policy(kind: LimitKind) -> str:
    """The limit's name in a `ratelimit` field."""
    return kind.quantity if kind.period in ("minute", "now") else f"{kind.quantity}-{kind.period}"

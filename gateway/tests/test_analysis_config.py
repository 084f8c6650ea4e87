"""The section `analysis`: accepted values, and the resulting configuration of the core."""

from __future__ import annotations

from typing import Any

import pytest
from proofgate_schema.analysis import Analysis
from pydantic import ValidationError


def test_an_empty_section_analyses_all_answers() -> None:
    analysis = Analysis()
    assert (analysis.sample, analysis.tenants, analysis.models) == (1.0, (), ())
    assert (analysis.window, analysis.false_alarms, analysis.top_logprobs) == (200, 0.001, 5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sample": -0.1},
        {"sample": 1.1},
        {"sample": float("nan")},
        {"window": 29},
        {"window": 10_001},
        {"falseAlarms": 0.0},
        {"falseAlarms": 0.2},
        {"topLogprobs": 0},
        {"topLogprobs": 9},
        {"vocabulary": 1},
        {"repetition": 2.0},
        {"maxAnswerBytes": 0},
        {"maxCopyBytes": 1},
        {"maxPairs": 0},
        {"window": 10_000, "maxPairs": 41},
        {"tenants": ["not a name"]},
        {"unknown": 1},
    ],
    ids=str,
)
def test_what_is_out_of_bounds_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Analysis.model_validate(wrong)

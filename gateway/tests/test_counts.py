"""Nouns in messages are singular or plural to match their counts."""

from __future__ import annotations

import pytest
from proofgate_schema.counts import format_count


@pytest.mark.parametrize(
    ("count", "noun", "told"),
    [
        (0, "record", "0 records"),
        (1, "record", "1 record"),
        (2, "record", "2 records"),
        (1, "entry", "1 entry"),
        (2, "entry", "2 entries"),
        (2, "body", "2 bodies"),
        (2, "key", "2 keys"),
        (2, "tree head", "2 tree heads"),
    ],
)
def test_one_has_the_singular_and_every_other_count_the_plural(count: int, noun: str, told: str) -> None:
    assert format_count(count, noun) == told

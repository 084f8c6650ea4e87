"""Measures what each threshold stops, for operators who set one. By default there is none.

A case counts as in `evaluate`; only the sum of scores is compared with another threshold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from bench.scoring.cases import Case
from bench.scoring.rules import Rule

THRESHOLDS = (40, 50, 60, 70, 80, 90, 100, 110, 120, 150, 200)


class Judged(Protocol):
    """A case and the rules that matched in it."""

    @property
    def case(self) -> Case:
        """The case."""

    @property
    def matched(self) -> frozenset[str]:
        """The ids of the matched rules."""


def table(rules: Mapping[str, Rule], results: Sequence[Judged]) -> list[dict[str, float]]:
    """For every threshold, the stopped attacks and honest texts, with precision and recall."""
    return [_row(rules, results, threshold) for threshold in THRESHOLDS]


def _row(rules: Mapping[str, Rule], results: Sequence[Judged], threshold: int) -> dict[str, float]:
    attacks = [result for result in results if result.case.kind == "attack"]
    honest = [result for result in results if result.case.kind == "benign"]
    found = sum(_is_stopped(rules, result, threshold) for result in attacks)
    wrong = sum(_is_stopped(rules, result, threshold) for result in honest)
    return {
        "threshold": threshold,
        "attacks": found,
        "honest": wrong,
        "recall": round(found / max(len(attacks), 1), 4),
        "precision": round(found / max(found + wrong, 1), 4),
    }


def _is_stopped(rules: Mapping[str, Rule], result: Judged, threshold: int) -> bool:
    matched = [rules[rule] for rule in result.matched]
    denied = any(rule.action == "block" for rule in matched) or sum(rule.score for rule in matched) >= threshold
    redacting = {rule.pack for rule in matched if rule.action == "redact"}
    return denied or (bool(redacting) if result.case.kind == "benign" else result.case.group in redacting)

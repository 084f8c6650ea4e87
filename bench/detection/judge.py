"""Findings of the packs in texts, and redacted texts."""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench.scoring.engine import Event, verdicts
from bench.scoring.reference import Match
from bench.scoring.rules import Rule

#: Number of texts that are sent to the engine together.
BATCH = 2_000


@dataclass(frozen=True)
class Found:
    """The matches in one text, and the score of each rule that redacts nothing; redacting rules have no score."""

    matches: frozenset[Match]
    scores: dict[str, int]
    blocked: bool
    redacted: frozenset[Match]

    def denied(self, threshold: int) -> bool:
        """Whether a text alone is refused."""
        return self.blocked or sum(self.scores.values()) >= threshold


class Judge:
    """Scans with the engine, by all rules or those of some packs."""

    def __init__(self, binary: Path, rules: Sequence[Rule]) -> None:
        self.rules = {rule.id: rule for rule in rules}
        self._binary = binary

    def found(self, texts: Iterable[str]) -> list[Found]:
        """One result for each text."""
        events = [Event(text) for text in texts]
        answers = []
        for start in range(0, len(events), BATCH):
            answers += verdicts(self._binary, events[start : start + BATCH])
        return [self._judged(matches) for matches in answers]

    def _judged(self, matches: set[Match]) -> Found:
        known = {match for match in matches if match.rule in self.rules}
        ids = {match.rule for match in known}
        return Found(
            frozenset(known),
            {rule: self.rules[rule].score for rule in ids if self.rules[rule].action != "redact"},
            any(self.rules[rule].action == "block" for rule in ids),
            frozenset(match for match in known if self.rules[match.rule].action == "redact"),
        )


def redact(text: str, matches: Iterable[Match]) -> str:
    """The text with a placeholder for each match; of overlapping matches, only for the first."""
    raw, parts, position = text.encode(), [], 0
    for match in sorted(matches, key=lambda match: (match.start, -match.end)):
        if match.start < position:
            continue
        parts += [raw[position : match.start], f"[redacted:{match.rule}]".encode()]
        position = match.end
    return b"".join([*parts, raw[position:]]).decode()


def _python(text: str) -> object:
    return ast.dump(ast.parse(text)) and None


_PARSERS: dict[str, Callable[[str], object]] = {
    ".json": json.loads,
    ".py": _python,
    ".toml": tomllib.loads,
    ".yaml": lambda text: list(yaml.load_all(text, yaml.CSafeLoader)),
    ".yml": lambda text: list(yaml.load_all(text, yaml.CSafeLoader)),
}


def parses(name: str, text: str) -> bool | None:
    """Whether a file can be parsed as the kind in its name; None for kinds without a parser here."""
    parser = _PARSERS.get(Path(name).suffix)
    if parser is None:
        return None
    try:
        parser(text)
    except (ValueError, SyntaxError, RecursionError, yaml.YAMLError):
        return False
    return True

"""A plain reference of the policy engine, written from rust-core/crates/policy/SEMANTICS.md.

It looks at every rule with Python's `re`, without prefilter, windows or streaming, so that its results can be believed
by reading it. `bench.scoring.agree` compares the engine with it, `bench.scoring.speed` its speed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from bench.scoring.checks import CHECKS
from bench.scoring.derived import derived
from bench.scoring.extents import end_of
from bench.scoring.folding import fold, folded, folded_copy, plain
from bench.scoring.rules import Direction, Rule
from bench.scoring.spared import Allow, spares

#: A threshold that an operator may set; by default, a policy has none.
THRESHOLD = 100
NOTHING = Allow()
#: The actions that remove a match from a request: permanently, or until the answer.
REPLACES = ("redact", "mask")
LEVELS = 2


class Match(NamedTuple):
    """A match of a rule; `start` and `end` are byte offsets into the UTF-8 of the scanned text."""

    rule: str
    start: int
    end: int


class Scanned(NamedTuple):
    """The findings in a text."""

    matches: set[Match]
    #: The replaced parts that reach further than their matches.
    replaced: set[Match]


class Span(NamedTuple):
    """Characters of a text, from `start` to before `end`."""

    start: int
    end: int


@dataclass(frozen=True)
class _Compiled:
    rule: Rule
    pattern: re.Pattern[str]
    filter: tuple[str, ...]
    check: Callable[[str], bool] | None
    spares: Callable[[str], bool]

    def matches(self, hay: str) -> Iterator[Span]:
        """Matches in one view of a text, in characters of that view."""
        position = 0
        while (match := self.pattern.search(hay, position)) is not None:
            text = match.group()
            if self.filter and not any(literal in plain(text) for literal in self.filter):
                position = match.start() + 1
                continue
            position = match.end()
            value = Span(*match.span("value" if self._holds_value(match) else 0))
            matched = hay[value.start : value.end]
            if (self.check is None or self.check(matched)) and not self.spares(matched):
                yield value

    @staticmethod
    def _holds_value(match: re.Match[str]) -> bool:
        """Whether the rule's `value` group takes part in a match."""
        return match.groupdict().get("value") is not None


def compiled(rule: Rule, allow: Allow = NOTHING) -> _Compiled:
    """Compiles one rule of a policy that allows something.

    Raises ValueError for a rule without literals and regex, re.error for a bad regex.
    """
    check = CHECKS[rule.check] if rule.check else None
    spared = spares(rule, allow)
    if rule.regex is None:
        if not rule.literals:
            raise ValueError(f"{rule.id} has neither literals nor a regex")
        pattern = "|".join(re.escape(folded(literal)) for literal in rule.literals)
        return _Compiled(rule, re.compile(pattern, re.ASCII), (), check, spared)
    regex = rule.regex.replace("(?<value>", "(?P<value>")
    if rule.view == "text":
        return _Compiled(rule, re.compile(regex, re.ASCII), tuple(map(plain, rule.literals)), check, spared)
    pattern = "".join(c if c.isascii() else fold(c) for c in regex)
    return _Compiled(rule, re.compile(pattern, re.ASCII), tuple(map(folded, rule.literals)), check, spared)


@dataclass(frozen=True)
class Verdict:
    """The outcome of one text as a separate message, under the rules' own actions and a threshold."""

    decision: str
    rule: str | None
    by_score: bool
    score: int


class Reference:
    """Rules of a policy that allows something, compiled; scans texts one by one."""

    def __init__(self, rules: Iterable[Rule], allow: Allow = NOTHING) -> None:
        self._rules = [compiled(rule, allow) for rule in rules]
        extended = (known.rule for known in self._rules if known.rule.extent != "match")
        self._extended = {rule.id: (rule, end_of(rule)) for rule in extended}

    def scan(self, text: str, direction: Direction) -> set[Match]:
        """All matches in a text and in the texts encoded in it."""
        return self.scan_with_replaced(text, direction).matches

    def scan_with_replaced(self, text: str, direction: Direction) -> Scanned:
        """The same, with the replaced parts."""
        offsets = [0, *accumulate(len(character.encode()) for character in text)]
        found = set(self._all_levels(text, direction))
        matches = {Match(rule, offsets[span.start], offsets[span.end]) for rule, span in found}
        ends = ((rule, span, self._replaced_end(rule, text, span.end, direction)) for rule, span in found)
        replaced = {Match(rule, offsets[span.start], offsets[end]) for rule, span, end in ends if end > span.end}
        return Scanned(matches, replaced)

    def _replaced_end(self, rule: str, text: str, end: int, direction: Direction) -> int:
        extended = self._extended.get(rule)
        if extended is None or (extended[0].extent == "private_key" and direction == "response"):
            return end
        return extended[1](text, end)

    def _all_levels(self, text: str, direction: Direction, level: int = 0) -> Iterator[tuple[str, Span]]:
        yield from self._one_text(text, direction)
        if level == LEVELS:
            return
        for inner in derived(text):
            for rule, span in self._all_levels(inner.text, direction, level + 1):
                yield rule, Span(inner.start + min(span.start, inner.plain), inner.end)

    def _one_text(self, text: str, direction: Direction) -> Iterator[tuple[str, Span]]:
        copy = folded_copy(text)
        for compiled_rule in self._rules:
            rule = compiled_rule.rule
            if not rule.applies_to(direction):
                continue
            if rule.view == "text" and rule.regex is not None:
                yield from ((rule.id, span) for span in compiled_rule.matches(text))
                continue
            for span in compiled_rule.matches(copy.text):
                yield rule.id, Span(copy.starts[span.start], copy.ends[span.end - 1])

    def judge(self, matches: Iterable[Match], threshold: int = THRESHOLD) -> Verdict:
        """The verdict over the matches of one message, as SEMANTICS.md says under "What a message's matches come to".

        A rule that blocks by itself is named; a score that reaches the threshold blocks without one.
        """
        rules = {compiled_rule.rule.id: compiled_rule.rule for compiled_rule in self._rules}
        order = {name: number for number, name in enumerate(rules)}
        found = sorted(set(matches), key=lambda match: (match.start, match.end, order[match.rule]))
        score = sum(rules[name].score for name in _counted(found, rules, order))
        actions = [rules[match.rule].action for match in found]
        if "block" in actions:
            return Verdict("block", found[actions.index("block")].rule, False, score)
        if score >= threshold:
            return Verdict("block", None, True, score)
        mildest = "flag" if actions else "allow"
        decision = next((action for action in REPLACES if action in actions), mildest)
        return Verdict(decision, None, False, score)


def _counted(found: Sequence[Match], rules: Mapping[str, Rule], order: Mapping[str, int]) -> set[str]:
    """The rules that count for the score of a message."""
    replaced: list[tuple[int, int]] = []
    for match in found:
        if rules[match.rule].action not in REPLACES:
            continue
        if replaced and match.start < replaced[-1][1]:
            start, end = replaced.pop()
            replaced.append((start, max(end, match.end)))
        else:
            replaced.append((match.start, match.end))
    counting = [
        match
        for match in found
        if rules[match.rule].action not in REPLACES
        and not any(start <= match.start and match.end <= end for start, end in replaced)
    ]
    counting.sort(key=lambda match: (-rules[match.rule].score, match.start, match.end, order[match.rule]))
    taken: list[Match] = []
    for match in counting:
        if all(match.end <= other.start or other.end <= match.start for other in taken):
            taken.append(match)
    return {match.rule for match in taken}

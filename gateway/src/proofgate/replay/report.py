"""Counts the results of a replay, and renders the report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from proofgate_schema.counts import format_count

from proofgate.replay.run import Replay

#: Reasons for which a body is unavailable because a part of its log cannot be read.
UNREADABLE = ("ledger_io", "ledger_corrupt")
RESULTS = ("same", "consistent", "differs", "not_replayable")
DIRECTIONS = ("request", "response")
#: Maximum number of characters of a text that are shown.
_MAX_TEXT_LENGTH = 2000
#: Maximum number of rows of a table in text output.
_MAX_ROWS = 40


@dataclass
class ReplayReport:
    """The results of a replay. `examples` are differing exchanges, at most `max_examples`; with `shows_text`
    they contain text of the bodies."""

    max_examples: int
    shows_text: bool = False
    exchanges: int = 0
    versions: Counter[str] = field(default_factory=Counter)
    """Number of exchanges by the version of the gateway that decided, as recorded."""
    results: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of replays by direction and result."""
    reasons: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Number of replays by direction, result and reason."""
    refused: Counter[bool] = field(default_factory=Counter)
    """Number of requests that a policy refused, by whether their body is available."""
    changes: Counter[tuple[str, str, str, str, str]] = field(default_factory=Counter)
    """Number of differing verdicts by direction, tenant, model, and the two verdicts."""
    rules: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Number of differing rules by direction. `less`: only the record names the rule. `more`: only the replay names
    the rule."""
    examples: list[dict[str, Any]] = field(default_factory=list)
    unreadable: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of bodies that could not be read, by log and reason."""

    def add(self, replays: Iterable[Replay]) -> None:
        """Counts one exchange."""
        self.exchanges += 1
        for replay in replays:
            if replay.direction == "request":
                self.versions[replay.exchange.core.version] += 1
            self.results[replay.direction, replay.result] += 1
            if replay.reason is not None:
                self.reasons[replay.direction, replay.result, replay.reason] += 1
                if replay.reason in UNREADABLE:
                    self.unreadable[replay.exchange.core.origin, replay.reason] += 1
            if not replay.exchange.was_admitted:
                self.refused[replay.body is not None] += 1
            if replay.result == "differs":
                self._differs(replay)

    @property
    def compared_count(self) -> int:
        """The number of bodies that were evaluated with a result."""
        compared = sum(self.results[direction, "same"] for direction in DIRECTIONS) + self.difference_count
        parts = sum(self.results[direction, "consistent"] for direction in DIRECTIONS)
        unseen = sum(self.reasons[direction, "consistent", "rules_and_score"] for direction in DIRECTIONS)
        return compared + parts - unseen

    @property
    def difference_count(self) -> int:
        """The number of directions of exchanges with another verdict."""
        return sum(self.results[direction, "differs"] for direction in DIRECTIONS)

    @property
    def problems(self) -> list[str]:
        """Messages about parts of logs that could not be read."""
        return [
            f"{origin}: cannot read {format_count(count, 'body')} [{reason}]: run fsck"
            for (origin, reason), count in sorted(self.unreadable.items())
        ]

    def document(self) -> dict[str, Any]:
        """Returns the whole report for programs."""
        return {
            "exchanges": self.exchanges,
            "versions": self.versions,
            **{direction: self._direction(direction) for direction in DIRECTIONS},
            "refused_by_policy": {"requests": self.refused.total(), "with_body": self.refused[True]},
            "changes": [
                dict(
                    zip(("direction", "tenant", "model", "recorded", "replayed"), change, strict=True),
                    count=count,
                )
                for change, count in self.changes.most_common()
            ],
            "rules": [
                {"direction": direction, "rule": rule, "change": change, "count": count}
                for (direction, rule, change), count in self.rules.most_common()
            ],
            "examples": self.examples,
        }

    def text(self) -> str:
        """Returns the report as text for people."""
        rows = [("", *(result.replace("_", " ") for result in RESULTS))]
        for direction in DIRECTIONS:
            rows.append((f"{direction}s", *(str(self.results[direction, result]) for result in RESULTS)))
        versions = ", ".join(_escape(version) for version in sorted(self.versions))
        parts = [
            f"{format_count(self.exchanges, 'exchange')}, decided by version {versions or 'unknown'}",
            _table(rows),
        ]
        reasons = [(direction, result, reason) for direction, result, reason in sorted(self.reasons)]
        if reasons:
            told = [
                (f"{direction}s", result.replace("_", " "), reason, str(self.reasons[key]))
                for key in reasons
                for direction, result, reason in [key]
            ]
            parts.append(_table([("", "result", "reason", "count"), *told]))
        if self.refused:
            total, without = self.refused.total(), self.refused[False]
            parts.append(
                f"refused by a policy: {format_count(total, 'request')}, {without} of them without a stored body"
            )
        if self.changes:
            head = ("direction", "tenant", "model", "recorded", "replayed", "count")
            parts.append(_count_lines(head, self.changes))
            parts.append(_count_lines(("direction", "rule", "change", "count"), self.rules))
        for example in self.examples:
            before, after = example["recorded"], example["replayed"]
            shown = f"  text: {json.dumps(example['text'])}" if "text" in example else ""
            parts.append(
                f"{_escape(example['id'])}  {example['direction']}"
                f"  {_format_side(before)} -> {_format_side(after)}{shown}"
            )
        return "\n\n".join(part for part in parts if part)

    def _direction(self, direction: str) -> dict[str, Any]:
        counts: dict[str, Any] = {result: self.results[direction, result] for result in RESULTS}
        counts["reasons"] = [
            {"result": result, "reason": reason, "count": count}
            for (of, result, reason), count in sorted(self.reasons.items())
            if of == direction
        ]
        return counts

    def _differs(self, replay: Replay) -> None:
        recorded, before, after = replay.exchange, replay.before, replay.after
        then = set(before["rules"]) if before else set()
        # If no body was evaluated, the recorded rules do not lead to the recorded verdict.
        now = set(after["rules"]) if after else then
        verdicts = (before["verdict"] if before else "-", after["verdict"] if after else "-")
        named = (recorded.tenant or "-", recorded.model or "-")
        self.changes[replay.direction, named[0], named[1], verdicts[0], verdicts[1]] += 1
        for change, rules in (("more", now - then), ("less", then - now)):
            for rule in rules:
                self.rules[replay.direction, rule, change] += 1
        if len(self.examples) < self.max_examples:
            example = {
                "id": recorded.id,
                "direction": replay.direction,
                "ts": recorded.start_record["ts"],
                "tenant": recorded.tenant,
                "model": recorded.model,
                "reason": replay.reason,
                "recorded": before,
                "replayed": after,
            }
            if self.shows_text and replay.body is not None:
                example["text"] = replay.body.decode(errors="replace")[:_MAX_TEXT_LENGTH]
            self.examples.append(example)


def _format_side(side: dict[str, Any] | None) -> str:
    if side is None:
        return "-"
    why = side["rules"] or ([side["code"]] if "code" in side else [])
    return f"{side['verdict']} ({', '.join(map(_escape, why))})" if why else str(side["verdict"])


def _count_lines(head: Sequence[str], counts: Counter[Any]) -> str:
    rows = [(*key, str(count)) for key, count in counts.most_common(_MAX_ROWS)]
    if not rows:
        return ""
    more = len(counts) - len(rows)
    return _table([head, *rows]) + (f"\n{more} more rows with --json" if more > 0 else "")


def _escape(text: str) -> str:
    """Escapes a text so that it stays on one line."""
    return text if text.isprintable() else json.dumps(text)


def _table(rows: Iterable[Sequence[str]]) -> str:
    """Formats rows in columns as wide as their widest entry."""
    listed = [[_escape(entry) for entry in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    return "\n".join(
        "  ".join(entry.ljust(width) for entry, width in zip(row, widths, strict=True)).rstrip()
        for row in listed
    )

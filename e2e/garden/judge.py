"""Compares a parser's reading with the guard's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from e2e.garden.exceptions import excuse
from e2e.garden.oracles import Oracle
from e2e.garden.reading import Message, Reading
from e2e.garden.sender import FOLLOWER_READING, Answers


@dataclass(frozen=True)
class Outcome:
    """The result for one message and one oracle; it has no difference and no exemption if both read the same."""

    message: Message
    difference: str | None = None
    exemption: str | None = None


def judge(oracle: Oracle, message: Message, answers: Answers) -> Outcome:
    """Compares the readings; a refusal is a difference unless it is exempt."""
    expected = [message.reading, FOLLOWER_READING] if message.keep_alive else [message.reading]
    # A parser that refuses the following request has read this request completely.
    for position, (wanted, got) in enumerate(zip(expected, answers.readings, strict=False)):
        if wrong := _different(oracle, wanted, got):
            return Outcome(message, f"{'follower' if position else 'request'} read otherwise: {wrong}")
    if len(answers.readings) == len(expected) and not answers.unfinished:
        return Outcome(message)
    if not answers.readings and answers.refusal is not None:
        exemption = excuse(oracle.name, message, closes=False)
        return Outcome(message, None if exemption else f"refused with {answers.refusal}", exemption)
    closed = len(answers.readings) == 1 and answers.refusal is None and not answers.unfinished
    if closed and (exemption := excuse(oracle.name, message, closes=True)):
        return Outcome(message, None, exemption)
    ending = "waits for more" if answers.unfinished else f"then {answers.refusal or 'closed'}"
    return Outcome(message, f"{len(answers.readings)} requests read instead of {len(expected)}, {ending}")


def unaccounted(oracle: Oracle, outcomes: Sequence[Outcome], answers: Sequence[Answers]) -> int:
    """The number of requests that the server behind a proxy served without an answer to the client."""
    if not oracle.is_proxy or any(outcome.difference for outcome in outcomes):
        return 0
    return max(answer.served for answer in answers) - sum(len(answer.readings) for answer in answers)


def _different(oracle: Oracle, wanted: Reading, got: Reading) -> str | None:
    if oracle.is_proxy:
        # A proxy may change the framing of a body.
        got = replace(got, framing=wanted.framing)
    if "://" in got.target or "://" in wanted.target:
        wanted, got = wanted.in_origin_form(), got.in_origin_form()
    names = [field.name for field in fields(Reading) if getattr(wanted, field.name) != getattr(got, field.name)]
    if not names:
        return None
    return ", ".join(f"{name} {getattr(wanted, name)!r} as {getattr(got, name)!r}" for name in names)

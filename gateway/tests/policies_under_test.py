"""Policies with different faults; configurations refer to them as `policies_under_test:<name>`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from proofgate.policy import Allow, Deny, Policy, PolicyRequest, Verdict


class Words:
    """Denies texts with a word; raises an error for "raise"."""

    name = "words"

    def __init__(self, word: str = "bluebird") -> None:
        self.word = word
        self.calls: list[int] = []
        self.life: list[str] = []

    def start(self) -> None:
        self.life.append("start")

    def close(self) -> None:
        self.life.append("close")

    def evaluate(self, batch: Sequence[PolicyRequest]) -> Sequence[Verdict]:
        self.calls.append(len(batch))
        return [self._verdict(request) for request in batch]

    def _verdict(self, request: PolicyRequest) -> Verdict:
        text = " ".join(text.text for text in request.texts)
        if "raise" in text:
            raise ValueError(text)
        return Deny("word", "It has a word.") if self.word in text else Allow()


class Answers:
    """Returns the same answer for every batch."""

    name = "answers"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def evaluate(self, batch: Sequence[PolicyRequest]) -> Any:  # noqa: ARG002 - the interface
        return self.answer


class Exits:
    """Raises SystemExit, which would end its thread."""

    name = "exits"

    def evaluate(self, batch: Sequence[PolicyRequest]) -> Sequence[Verdict]:
        raise SystemExit(len(batch))


class Waits:
    """Does not return until `end` is set."""

    name = "waits"

    def __init__(self) -> None:
        self.end = threading.Event()

    def evaluate(self, batch: Sequence[PolicyRequest]) -> Sequence[Verdict]:
        self.end.wait()
        return [Allow() for _ in batch]


def words(**parameters: Any) -> Policy:
    return Words(**parameters)


def broken(**_: Any) -> Policy:
    raise RuntimeError("secret")


def no_policy() -> object:
    return object()

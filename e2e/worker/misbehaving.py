"""Policies for workers in tests: each acts as the request's text says."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

from proofgate.policy import Allow, Deny, Flag, Policy, PolicyRequest, Replace, Replacement, Verdict


class Obeys:
    """Denies, flags, replaces, sleeps, spins, raises or returns an invalid value, as the text says."""

    name = "obeys"

    def __init__(self, word: str) -> None:
        self.word = word

    def evaluate(self, batch: Sequence[PolicyRequest]) -> Sequence[Verdict]:
        return [self._verdict(request) for request in batch]

    def _verdict(self, request: PolicyRequest) -> Any:
        said = " ".join(text.text for text in request.texts)
        if self.word in said:
            return Deny("word", f"It has the word of {request.tenant}.")
        if "do-flag" in said:
            return Flag("odd", 60)
        if "do-sleep" in said:
            threading.Event().wait(5)
        while "do-spin" in said:
            pass
        if "do-raise" in said:
            raise ValueError(said)
        if "do-nonsense" in said:
            return 7
        found = [
            Replacement(number, match.start(), match.end(), "[NAME]")
            for number, text in enumerate(request.texts)
            for match in re.finditer("Ann|staff", text.text)
        ]
        return Replace("names", found) if found else Allow()


def obeys(word: str = "bluebird") -> Policy:
    """The factory for configurations."""
    return Obeys(word)

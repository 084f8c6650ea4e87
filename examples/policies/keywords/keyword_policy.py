"""Denies requests that contain a word from a list.

The list is a file, such as a mounted ConfigMap. The policy reads it again when it changes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from proofgate.policy import Allow, Deny, Policy, PolicyRequest, Verdict

Seen = tuple[int, int, int]


class Keywords:
    """Matches the words of `file`, which has one word per line; `#` starts a comment; case is ignored."""

    def __init__(self, file: Path, reason: str) -> None:
        self._file = file
        self._reason = reason
        self._seen: Seen | None = None
        self._pattern: re.Pattern[str] | None = None

    @property
    def name(self) -> str:
        return "keywords"

    def start(self) -> None:
        """Reads the list, so that a missing file is an error before the first request."""
        self._read_if_changed()

    def evaluate(self, batch: Sequence[PolicyRequest]) -> Sequence[Verdict]:
        # A missing list raises an error: without the list, no request may pass as if it had been checked.
        self._read_if_changed()
        return [self._verdict(request) for request in batch]

    def _verdict(self, request: PolicyRequest) -> Verdict:
        if self._pattern is not None:
            for text in request.texts:
                if self._pattern.search(text.text.casefold()):
                    return Deny("keyword", self._reason)
        return Allow()

    def _read_if_changed(self) -> None:
        # stat() follows the links that a mount replaces when its ConfigMap changes.
        found = os.stat(self._file)
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen != self._seen:
            lines = (line.partition("#")[0].strip() for line in self._file.read_text().splitlines())
            words = [re.escape(line.casefold()) for line in lines if line]
            self._pattern = re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)") if words else None
            self._seen = seen


def policy(file: str, reason: str = "It has a word that may not leave the company.") -> Policy:
    """The factory: `keywords.keyword_policy:policy`, `parameters: {file: /etc/keywords/words.txt}`."""
    return Keywords(Path(file), reason)

"""Sources of the bodies of exchanges."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from proofgate.replay.replay_exchange import ReplayExchange

#: Maximum bytes of a body. A longer body is not read.
MAX_BODY_BYTES = 64 << 20
#: Pattern of a request id that may be used as a file name, so that it cannot lead to another folder.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


class BodySource(Protocol):
    """Hands out bodies. What it hands out is what the record commits to, where one does."""

    def body(self, recorded: ReplayExchange, answer: bool) -> bytes | str:
        """The body of a request or of its answer; or why not: `not_stored`, `erased` (the commitment binds
        nothing any more), `shred_key_missing`, `other_body` (it is not what the record commits to),
        `too_large`."""


class StoredBodies:
    """The bodies that workers stored beside the log, for holders of the tenants' keys."""

    def body(self, recorded: ReplayExchange, answer: bool) -> bytes | str:
        """As of every source; further codes are those of `proofgate ledger payload`."""
        return recorded.core.stored(answer)


class BodyFolder:
    """Files that somebody kept: `<request id>.request` and `<request id>.response`, byte for byte."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def body(self, recorded: ReplayExchange, answer: bool) -> bytes | str:
        """As of every source; not every record of a refused request commits to its body."""
        length = recorded.body_length(answer)
        if length is None or not _NAME.fullmatch(recorded.id):
            return "not_stored"
        if length > MAX_BODY_BYTES:
            return "too_large"
        content = _read(self._folder / f"{recorded.id}.{'response' if answer else 'request'}", length)
        if content is None:
            return "not_stored"
        if len(content) != length:
            return "other_body"
        if not recorded.is_committed:
            return content
        return recorded.core.commits_to(answer, content) or content


class FallbackSource:
    """Several sources: what one has not, the next one is asked for."""

    def __init__(self, sources: Sequence[BodySource]) -> None:
        self._sources = sources

    def body(self, recorded: ReplayExchange, answer: bool) -> bytes | str:
        """The first body; else why the first one that knows of it has none."""
        reason = "not_stored"
        for source in self._sources:
            body = source.body(recorded, answer)
            if isinstance(body, bytes):
                return body
            reason = body if reason == "not_stored" else reason
        return reason


def _read(path: Path, length: int) -> bytes | None:
    """What a regular file holds, at most one byte more than `length`; None where there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return file.read(length + 1)

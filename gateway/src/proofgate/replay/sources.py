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
    """A source of bodies. If the record commits to a body, the source returns only a matching one."""

    def body(self, recorded: ReplayExchange, answer: bool) -> bytes | str:
        """Returns the body of a request or of its response, or the code of why there is none: `not_stored`,
        `erased` (the commitment can no longer be checked), `shred_key_missing`, `other_body` (the body does
        not match the commitment), `too_large`."""


class StoredBodies:
    """The bodies that workers stored beside the log, for holders of the tenants' keys."""

    def body(self, recorded: ReplayExchange, answer: bool) -> bytes | str:
        """See `BodySource`. Further codes are those of `proofgate ledger payload`."""
        return recorded.core.stored(answer)


class BodyFolder:
    """A folder of bodies in files: `<request id>.request` and `<request id>.response`, byte for byte."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def body(self, recorded: ReplayExchange, answer: bool) -> bytes | str:
        """See `BodySource`. Not every record of a refused request commits to its body."""
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
    """Several sources, which are tried in order."""

    def __init__(self, sources: Sequence[BodySource]) -> None:
        self._sources = sources

    def body(self, recorded: ReplayExchange, answer: bool) -> bytes | str:
        """Returns the first body that a source has; otherwise the code of the first source that knows the
        exchange."""
        reason = "not_stored"
        for source in self._sources:
            body = source.body(recorded, answer)
            if isinstance(body, bytes):
                return body
            reason = body if reason == "not_stored" else reason
        return reason


def _read(path: Path, length: int) -> bytes | None:
    """Reads at most `length` + 1 bytes of a regular file; None if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return file.read(length + 1)

"""The configurations that the records of a mirrored log name. They show which rules decided, so they are
evidence like the verdicts. A mirror gets only configurations that records name, so that nobody can fill it by
placing files."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from proofgate.archive import FOLDER
from proofgate.mirror.target import CHUNK_BYTES, MirrorError, MirrorObject
from proofgate.regular_file import open_regular, read_regular

#: The digest of an archived configuration in an `open` or `config` record: `settings`, or `config` without
#: it. A match inside a JSON string is impossible, because its quotes would be escaped. Admissions do not
#: match, because they have only 16 digits.
_REFERENCE = re.compile(rb'"config":"([0-9a-f]{64})"(?:,"settings":"([0-9a-f]{64})")?')
_MAX_REFERENCE_BYTES = 256
#: Maximum bytes of an archived configuration.
_MAX_BYTES = 64 << 20


def referenced_digests(segment: Path) -> set[str]:
    """Returns the digests that the records in a segment name. Raises MirrorError."""
    found: set[str] = set()
    kept = b""
    try:
        with open_regular(segment) as file:
            while chunk := file.read(CHUNK_BYTES):
                text = kept + chunk
                # A reference at the end may continue in the next chunk.
                whole = len(text) - _MAX_REFERENCE_BYTES
                found.update(_digest(match) for match in _REFERENCE.finditer(text) if match.start() < whole)
                kept = text[max(whole, 0) :]
            found.update(map(_digest, _REFERENCE.finditer(kept)))
    except OSError as error:
        raise MirrorError("mirror_source", f"{segment} cannot be read: {error.strerror}") from None
    return found


def _digest(match: re.Match[bytes]) -> str:
    return (match[2] or match[1]).decode()


def configuration_object(ledger: Path, digest: str) -> MirrorObject | None:
    """Returns the archived configuration with a digest; None while the ledger has none that matches the
    digest."""
    content = read_regular(ledger / FOLDER / f"{digest}.json", _MAX_BYTES)
    if content is None or hashlib.sha256(content).hexdigest() != digest:
        return None
    return MirrorObject.from_bytes(f"ledger/{FOLDER}/{digest}.json", content)

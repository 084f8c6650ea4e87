"""The readers of an index over a port: a file with the SHA-256 of their keys, which have no other use."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofgate import times
from proofgate.well_known_keys import WELL_KNOWN_MESSAGE, is_well_known

log = logging.getLogger("proofgate.index")

_DIGEST = re.compile(r"[0-9a-f]{64}")
_MAX_FILE_BYTES = 1 << 20


class ReadersError(Exception):
    """The file of readers cannot be used. The message says what to do."""

    code = "readers_unusable"


@dataclass(frozen=True)
class Reader:
    """Somebody who may read the exchanges of one tenant, or, with None as `tenant`, of all. `expires_at` is
    in Unix microseconds; None: never."""

    name: str
    tenant: str | None
    expires_at: int | None = None
    subject: str | None = None
    """The `sub` of an ID token. People can often choose their name, but not their `sub`."""

    @property
    def identity(self) -> tuple[str, str | None, str | None]:
        """The values that distinguish this reader from all others."""
        return self.name, self.tenant, self.subject

    def is_expired(self, now_us: int) -> bool:
        """Whether the access has expired."""
        return self.expires_at is not None and now_us >= self.expires_at


class ReadersFile:
    """The readers in a file, which is read again when it changes. While the file cannot be used, there are no
    readers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._seen: tuple[int, ...] | None = None
        self._readers: dict[str, Reader] = {}
        self._problem: str | None = None
        self._refresh()
        if self._problem is not None:
            raise ReadersError(self._problem)

    def find_by_key(self, key: str) -> Reader | None:
        """Returns the reader with this key; None for an unknown key. Raises ReadersError while the file
        cannot be used."""
        with self._lock:
            self._refresh()
            if self._problem is not None:
                raise ReadersError(self._problem)
            readers = self._readers
        presented = hashlib.sha256(key.encode()).hexdigest()
        found = None
        # All digests are compared in constant time, so the duration does not reveal how much of a digest
        # matched.
        for digest, reader in readers.items():
            if hmac.compare_digest(digest, presented):
                found = reader
        return found

    def count_same_kind(self, reader: Reader) -> int:
        """The number of readers that share this reader's pool of the access log: readers of one tenant, or of
        all tenants."""
        with self._lock:
            alike = {
                (one.name, one.tenant)
                for one in self._readers.values()
                if (one.tenant is None) == (reader.tenant is None)
            }
        return max(len(alike), 1)

    def _refresh(self) -> None:
        seen: tuple[int, ...] = ()
        try:
            stat = self._path.stat()
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if seen == self._seen:
                return
            self._readers, self._problem = parse_readers(self._path), None
        except OSError as error:
            self._problem = f"{self._path} cannot be read: {error.strerror}"
        except ReadersError as error:
            self._problem = str(error)
        if self._problem is not None and seen != self._seen:
            log.error("%s [%s]", self._problem, ReadersError.code)
        self._seen = seen


def parse_readers(path: Path) -> dict[str, Reader]:
    """Parses a file: an object that maps each digest to `{"name", "tenant"}` or `{"name", "all": true}`, each
    optionally with `notAfter`, a day or a time.

    Raises ReadersError, OSError.
    """
    with path.open("rb") as file:
        content = file.read(_MAX_FILE_BYTES + 1)
    if len(content) > _MAX_FILE_BYTES:
        raise ReadersError(f"{path} is larger than {_MAX_FILE_BYTES} bytes")
    try:
        document = json.loads(content, object_pairs_hook=_reject_duplicates)
    except (ValueError, RecursionError) as error:
        raise ReadersError(f"{path} is not a JSON object of readers: {error}") from None
    if not isinstance(document, dict):
        raise ReadersError(f"{path} is not a JSON object of readers")
    readers = {}
    for digest, entry in document.items():
        if not _DIGEST.fullmatch(digest):
            # The text may be a key that somebody wrote instead of its digest.
            raise ReadersError(
                f"{path}: the name of a reader is not the SHA-256 of a key in 64 lower-case hexadecimal digits: "
                "`proofgate keys hash` prints it"
            )
        if is_well_known(digest):
            raise ReadersError(f"{path}: {digest[:8]}… is {WELL_KNOWN_MESSAGE}")
        readers[digest] = _reader(path, digest, entry)
    return readers


def _reader(path: Path, digest: str, entry: Any) -> Reader:
    wrong = ReadersError(
        f'{path}: {digest[:8]}… must be {{"name": …, "tenant": …}} or {{"name": …, "all": true}},'
        ' with or without "notAfter": a day or a time'
    )
    if not isinstance(entry, dict):
        raise wrong
    asked = dict(entry)
    until = None
    if "notAfter" in asked:
        try:
            # A key is valid until the end of the named day.
            until = times.parse_exclusive_end(asked.pop("notAfter"))
        except (ValueError, TypeError):
            raise wrong from None
    name, tenant = asked.get("name"), asked.get("tenant")
    if not isinstance(name, str) or not name:
        raise wrong
    if asked == {"name": name, "all": True}:
        return Reader(name, None, until)
    if isinstance(tenant, str) and tenant and asked == {"name": name, "tenant": tenant}:
        return Reader(name, tenant, until)
    raise wrong


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is repeated")
    return found

"""Sessions of readers with a cookie. They are in memory: after a restart of the auditor, all readers must
sign in again."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import OrderedDict

from proofgate.index.readers import Reader

#: Maximum number of sessions. Above it, the oldest session ends.
MAX_SESSIONS = 1000
#: Maximum number of sessions of one reader. Above it, the reader's oldest session ends.
MAX_SESSIONS_PER_READER = 20


class Sessions:
    """The signed-in readers, by the digests of their cookies. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: OrderedDict[bytes, Reader] = OrderedDict()

    def start(self, reader: Reader) -> str:
        """Starts a session and returns the content of its cookie."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._readers[_digest(token)] = reader
            self._drop_expired()
            own = [digest for digest, one in self._readers.items() if one.identity == reader.identity]
            for digest in own[:-MAX_SESSIONS_PER_READER]:
                del self._readers[digest]
            while len(self._readers) > MAX_SESSIONS:
                self._readers.popitem(last=False)
        return token

    def find(self, token: str) -> Reader | None:
        """Returns the reader of a cookie; None if its session has ended."""
        with self._lock:
            self._drop_expired()
            return self._readers.get(_digest(token))

    def end(self, token: str) -> None:
        """Ends a session."""
        with self._lock:
            self._readers.pop(_digest(token), None)

    def count_same_kind(self, reader: Reader) -> int:
        """The number of signed-in readers of the same kind: of one tenant, or of all tenants."""
        with self._lock:
            return len(
                {
                    one.identity
                    for one in self._readers.values()
                    if (one.tenant is None) == (reader.tenant is None)
                }
            )

    def _drop_expired(self) -> None:
        now = time.time_ns() // 1000
        for digest in [digest for digest, reader in self._readers.items() if reader.is_expired(now)]:
            del self._readers[digest]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()

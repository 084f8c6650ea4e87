"""The retention job's statements in the auditor's log. If anchoring is configured, nothing is destroyed
before its statement is in this log.

The log grows without limit. So the part that was read is cached beside the holds, and each time only newer
entries are read. Without the cache, the log is read from its start.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Collection
from pathlib import Path

from proofgate import _core
from proofgate.aggregate_log import AggregateLogError, LoggedStatements, LogSource, read_log_statements
from proofgate.auditor_port import AuditorUnavailableError

#: Name of the cache file in the retention job's state.
CACHE_FILE = "auditor-log"
_VERSION = 1
#: Seconds between two polls; the auditor also polls once a second.
_POLL_SECONDS = 1.0
_DIGEST_BYTES = 32


class AnchorsError(Exception):
    """The contents of the auditor's log are unknown; `code` says why."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Anchors:
    """The retention job's statements in an auditor's log. The key is the auditor's verifying key. `cache` is
    the cache file, which may be used only under the lock of the retention job's state; None: no cache."""

    def __init__(self, source: LogSource, key: str, cache: Path | None = None) -> None:
        self._source, self._key, self._cache = source, key, cache
        self._known: LoggedStatements | None = None

    def without_cache(self) -> Anchors:
        """Returns a copy that writes no cache."""
        return Anchors(self._source, self._key)

    def read(self) -> set[str]:
        """Returns the SHA-256 of each statement, in hexadecimal. Raises AnchorsError."""
        if self._known is None and self._cache is not None:
            self._known = _read_cache(self._cache)
        before = self._known
        try:
            self._known = read_log_statements(self._source, self._key, before)
        except AuditorUnavailableError as error:
            raise AnchorsError(str(error), "auditor_unreachable") from None
        except AggregateLogError as error:
            remembered = "" if before is None else f"; the results of earlier reads are in {self._cache}"
            raise AnchorsError(f"{error}{remembered}", "auditor_log_refused") from None
        except OSError as error:
            message = f"{error.filename or self._source} cannot be read: {error.strerror}"
            raise AnchorsError(message, "auditor_unreachable") from None
        if self._cache is not None and (before is None or self._known.tree.size != before.tree.size):
            _write_cache(self._cache, self._known)
        return self._known.digests

    def wait(
        self, wanted: Collection[str], deadline: float, pause: Callable[[float], None] = time.sleep
    ) -> set[str]:
        """Reads the log until it has all wanted statements, or until `time.monotonic()` reaches the deadline,
        and at least once. Returns the statements in the log. Raises AnchorsError if the last attempt
        failed."""
        while True:
            try:
                found = self.read()
            except AnchorsError:
                if time.monotonic() >= deadline:
                    raise
            else:
                if found.issuperset(wanted) or time.monotonic() >= deadline:
                    return found
            pause(_POLL_SECONDS)


def _read_cache(path: Path) -> LoggedStatements | None:
    """Reads the cache. None for an unreadable cache: the log is then read from its start."""
    try:
        told = json.loads(path.read_bytes())
        if told["v"] != _VERSION:
            return None
        tree = _core.Tree(told["size"], [bytes.fromhex(peak) for peak in told["peaks"]])
        digests = {str(digest) for digest in told["statements"]}
        if any(len(bytes.fromhex(digest)) != _DIGEST_BYTES for digest in digests):
            return None
        return LoggedStatements(str(told["origin"]), tree, digests)
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _write_cache(path: Path, known: LoggedStatements) -> None:
    """Writes the cache. A failure only makes the next read slower."""
    told = {
        "v": _VERSION,
        "origin": known.origin,
        "size": known.tree.size,
        "peaks": [peak.hex() for peak in known.tree.peaks],
        "statements": sorted(known.digests),
    }
    aside = path.with_name(f"{path.name}.new")
    with contextlib.suppress(OSError):
        aside.write_text(json.dumps(told), encoding="ascii")
        aside.replace(path)

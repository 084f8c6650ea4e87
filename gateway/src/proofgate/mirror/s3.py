"""A mirror in a bucket of an S3-compatible store with object lock: each object is written once, and its
version cannot be removed or replaced before its lock ends."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import requests

from proofgate.mirror.s3_client import S3Client
from proofgate.mirror.target import ConflictError, MirrorError, MirrorObject

_DAY = 86_400
#: Seconds by which the clocks of the store and the auditor may differ before a lock is set again.
_CLOCK_SKEW = 3600
_MODE_STRENGTH = {"GOVERNANCE": 1, "COMPLIANCE": 2}
_CONFLICT_STATUSES = {409, 412}
_FULL_CODES = {b"QuotaExceeded", b"XMinioStorageFull", b"StorageFull", b"EntityTooLarge"}


@dataclass(frozen=True)
class ObjectLock:
    """The lock of each object, for a number of days from its writing. `mode` is COMPLIANCE (nobody can remove
    it earlier) or GOVERNANCE (users with a permission to bypass can)."""

    mode: str
    days: int

    def retain_until(self, written: float) -> float:
        """Returns the end of the lock of an object that was written at a time. Both are Unix seconds; the end
        is a whole number, as in stores."""
        return float(int(written) + self.days * _DAY)

    def is_satisfied_by(self, headers: Mapping[str, str], end: float) -> bool:
        """Whether an object, according to the store's response, has a lock of at least this mode and until at
        least a time."""
        mode = headers.get("x-amz-object-lock-mode", "").upper()
        until = _unix_seconds(headers.get("x-amz-object-lock-retain-until-date", ""))
        return _MODE_STRENGTH.get(mode, 0) >= _MODE_STRENGTH[self.mode] and until is not None and until >= end


class BucketTarget:
    """See `Target`."""

    def __init__(self, name: str, client: S3Client, prefix: str, lock: ObjectLock) -> None:
        self.name = name
        self._client, self._lock = client, lock
        self._prefix = f"{prefix}/" if prefix else ""

    def problem(self) -> str | None:
        """Returns why the bucket would not protect objects; None if it does. Raises MirrorError."""
        with self._client.request("GET", query={"versioning": ""}) as answer:
            self._require_ok(answer, "its versioning cannot be read")
            if self._client.xml(answer).findtext("Status") != "Enabled":
                return "the bucket is not versioned: overwritten or deleted objects would be lost"
        with self._client.request("GET", query={"object-lock": ""}) as answer:
            if answer.status_code != 200 or (
                self._client.xml(answer).findtext("ObjectLockEnabled") != "Enabled"
            ):
                return "the bucket has no object lock: anyone with its credentials could delete objects"
        return None

    def put(self, piece: MirrorObject) -> bool:
        """See `Target`."""
        if self._is_present(piece):
            return False
        checksum = base64.b64encode(piece.sha256).decode()
        end = self._lock.retain_until(time.time())
        headers = {
            "Content-Type": "application/octet-stream",
            "If-None-Match": "*",
            "X-Amz-Checksum-Sha256": checksum,
            "X-Amz-Object-Lock-Mode": self._lock.mode,
            "X-Amz-Object-Lock-Retain-Until-Date": _time_text(end),
        }
        with self._client.request("PUT", self._prefix + piece.key, headers=headers, body=piece) as answer:
            if answer.status_code not in _CONFLICT_STATUSES:
                self._require_ok(answer, "it does not accept an object")
                is_put = True
            else:
                is_put = False
        if is_put:
            self._require_locked(self._prefix + piece.key, end)
            return True
        if self._is_present(piece):
            return False
        raise MirrorError("mirror_unreachable", "it reports that an object exists, but does not return it")

    def keys(self, prefix: str) -> Iterator[str]:
        """See `Target`."""
        before = None
        for key, _ in self._versions(prefix):
            if key != before:
                yield key
            before = key

    def fetch(self, key: str, write: Callable[[bytes], object]) -> None:
        """See `Target`."""
        # Versions are listed newest first, so the last one is the original, whatever was written over it.
        own = [version for found, version in self._versions(key) if found == key]
        if not own:
            raise MirrorError("mirror_bad_answer", f"the bucket has no object {key}")
        with self._client.request("GET", self._prefix + key, {"versionId": own[-1]}) as answer:
            self._require_ok(answer, f"{key} cannot be read")
            for chunk in self._client.stream(answer):
                write(chunk)

    def _versions(self, prefix: str) -> Iterator[tuple[str, str]]:
        """Yields keys and versions, the newest version of each key first."""
        marker: dict[str, str] = {}
        while True:
            query = {"versions": "", "prefix": self._prefix + prefix, **marker}
            with self._client.request("GET", query=query) as answer:
                self._require_ok(answer, "its objects cannot be listed")
                listed = self._client.xml(answer)
            for version in listed.iterfind("Version"):
                key = version.findtext("Key") or ""
                yield key.removeprefix(self._prefix), version.findtext("VersionId") or "null"
            if listed.findtext("IsTruncated") != "true":
                return
            names = {"key-marker": "NextKeyMarker", "version-id-marker": "NextVersionIdMarker"}
            marker = {name: text for name, tag in names.items() if (text := listed.findtext(tag))}

    def _is_present(self, piece: MirrorObject) -> bool:
        """Whether exactly this object exists and is locked. Raises ConflictError, MirrorError."""
        key = self._prefix + piece.key
        with self._client.request("HEAD", key, headers={"X-Amz-Checksum-Mode": "ENABLED"}) as answer:
            if answer.status_code == 404:
                return False
            self._require_ok(answer, "the metadata of an object cannot be read")
            found = answer.headers
        if found.get("Content-Length") != str(piece.length):
            raise ConflictError(piece.key)
        checksum = found.get("x-amz-checksum-sha256")
        if (
            self._digest(key) != piece.sha256
            if checksum is None
            else (checksum != base64.b64encode(piece.sha256).decode())
        ):
            raise ConflictError(piece.key)
        now = time.time()
        written = _http_seconds(found.get("Last-Modified", ""), now)
        if not self._lock.is_satisfied_by(found, self._lock.retain_until(min(written, now)) - _CLOCK_SKEW):
            self._extend_lock(key)
        return True

    def _require_locked(self, key: str, end: float) -> None:
        """Checks the lock of an object, because a store may accept the headers and ignore them. Raises
        MirrorError."""
        with self._client.request("HEAD", key) as answer:
            self._require_ok(answer, "the metadata of an object cannot be read")
            found = answer.headers
        if not self._lock.is_satisfied_by(found, end):
            mode = found.get("x-amz-object-lock-mode", "no lock")
            until = found.get("x-amz-object-lock-retain-until-date", "no time")
            shown = " until ".join(text[:40] if text.isprintable() else "?" for text in (mode, until))
            raise MirrorError(
                "mirror_not_locked",
                f"an object has the lock {shown}, but {self._lock.mode} until {_time_text(end)} was "
                "requested",
            )

    def _digest(self, key: str) -> bytes:
        digest = hashlib.sha256()
        with self._client.request("GET", key) as answer:
            self._require_ok(answer, "an object cannot be read")
            for chunk in self._client.stream(answer):
                digest.update(chunk)
        return digest.digest()

    def _extend_lock(self, key: str) -> None:
        """Locks an object that another writer has created, or whose older lock has ended."""
        end = self._lock.retain_until(time.time())
        content = (
            '<Retention xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Mode>{self._lock.mode}</Mode><RetainUntilDate>{_time_text(end)}</RetainUntilDate></Retention>"
        ).encode()
        headers = {"X-Amz-Checksum-Sha256": base64.b64encode(hashlib.sha256(content).digest()).decode()}
        body = MirrorObject.from_bytes(key, content)
        with self._client.request("PUT", key, {"retention": ""}, headers, body) as answer:
            self._require_ok(answer, "an object cannot be locked")
        self._require_locked(key, end)

    def _require_ok(self, answer: requests.Response, why: str) -> None:
        if answer.status_code == 200:
            return
        text = b"" if answer.raw is None else next(self._client.stream(answer), b"")
        code = text.partition(b"<Code>")[2].partition(b"</Code>")[0]
        kind = "mirror_full" if code in _FULL_CODES else "mirror_bad_answer"
        shown = code.decode("ascii", "replace") if code.isalnum() else ""
        raise MirrorError(kind, f"{why}: {answer.status_code} {shown}".rstrip())


def _time_text(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _unix_seconds(text: str) -> float | None:
    """Parses an ISO 8601 time, the format of a lock's end; None for an invalid time."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp()


def _http_seconds(text: str, otherwise: float) -> float:
    """Parses a time in an HTTP header field (RFC 9110 section 5.6.7); `otherwise` if it is invalid."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError):
        return otherwise

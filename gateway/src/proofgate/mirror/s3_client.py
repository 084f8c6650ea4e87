"""Requests to an S3-compatible object store: signed by the core, streamed, with limits on time and memory.

Addresses have the form `endpoint/bucket/key`. Redirects, and proxies and files from the environment, are
ignored: requests go only to the configured endpoint.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

import requests

from proofgate import _core
from proofgate.mirror.target import MirrorError, MirrorObject

#: Timeouts in seconds for the connection, and between two packets.
TIMEOUTS = (5.0, 60.0)
_MAX_RESPONSE_BYTES = 8 << 20
_EMPTY_SHA256 = hashlib.sha256(b"").digest()
_ERROR_CODES = {403: "mirror_denied", 507: "mirror_full"}


@dataclass(frozen=True)
class Credentials:
    """A source of an access key in files or in the environment. It is read for each request, so that it can
    be changed."""

    files: Path | None
    environment: Mapping[str, str] = field(repr=False)

    def read(self) -> tuple[str, str, str | None]:
        """Returns id, secret and session token. Raises MirrorError."""
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        identity, secret, token = (self._read_value(name) for name in names)
        if not identity or not secret:
            where = f"the files of {self.files}" if self.files else "the environment"
            raise MirrorError("mirror_credentials", f"{names[0]} or {names[1]} is not in {where}")
        return identity, secret, token or None

    def _read_value(self, name: str) -> str:
        if self.files is None:
            return self.environment.get(name, "").strip()
        try:
            return (self.files / name).read_text(encoding="ascii").strip()
        except (OSError, UnicodeError):
            return ""


class _Body:
    """An object's content as a body that `requests` streams: it has a length and is read once."""

    def __init__(self, piece: MirrorObject) -> None:
        self._chunks, self._length = piece.chunks(), piece.length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks


class S3Client:
    """A client of one bucket. For use by one thread at a time."""

    def __init__(
        self, endpoint: str, region: str, bucket: str, credentials: Credentials, authorities: Path | None
    ) -> None:
        self._endpoint, self._region, self._bucket = endpoint.rstrip("/"), region, bucket
        self._credentials = credentials
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = True if authorities is None else str(authorities)

    @contextmanager
    def request(
        self,
        method: str,
        key: str = "",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: MirrorObject | None = None,
    ) -> Iterator[requests.Response]:
        """Sends a request and yields the response, whose body is not read yet. Statuses of a general failure
        raise an error.

        Raises MirrorError, and FileChangedError if the file of the object changed.
        """
        path = f"/{self._bucket}" + (f"/{key}" if key else "")
        text = urlencode(sorted((query or {}).items()))
        url = urlsplit(self._endpoint)
        signed = _core.sign_s3(
            method,
            f"{url.path}{path}",
            text,
            url.netloc,
            list((headers or {}).items()),
            _EMPTY_SHA256 if body is None else body.sha256,
            self._credentials.read(),
            self._region,
            int(time.time()),
        )
        request = requests.Request(
            method,
            f"{self._endpoint}{path}" + (f"?{text}" if text else ""),
            headers={**(headers or {}), **dict(signed), "Accept-Encoding": "identity"},
            data=None if body is None else _Body(body),
        )
        try:
            prepared = self._session.prepare_request(request)
            if body is not None:
                prepared.headers.pop("Transfer-Encoding", None)
                prepared.headers["Content-Length"] = str(body.length)
            answer = self._session.send(
                prepared, timeout=TIMEOUTS, stream=True, allow_redirects=False, verify=self._session.verify
            )
        except requests.exceptions.SSLError:
            raise MirrorError("mirror_tls", "its certificate is not trusted, or TLS fails") from None
        except requests.exceptions.Timeout:
            raise MirrorError("mirror_unreachable", "it does not answer in time") from None
        except (requests.exceptions.RequestException, OSError):
            raise MirrorError("mirror_unreachable", "it is not reachable, or closed the connection") from None
        with answer:
            yield _check_status(answer)

    def text(self, answer: requests.Response) -> bytes:
        """Reads the body of a response, with a size limit. Raises MirrorError."""
        content = b""
        for chunk in self.stream(answer):
            content += chunk
            if len(content) > _MAX_RESPONSE_BYTES:
                raise MirrorError("mirror_bad_answer", "a response is too large")
        return content

    def stream(self, answer: requests.Response) -> Iterator[bytes]:
        """Yields the body of a response in chunks. Raises MirrorError."""
        try:
            yield from answer.iter_content(1 << 18)
        except (requests.exceptions.RequestException, OSError):
            raise MirrorError("mirror_unreachable", "it did not complete a response") from None

    def xml(self, answer: requests.Response) -> ElementTree.Element:
        """Parses the body of a response as XML, without namespaces. Raises MirrorError."""
        try:
            # The parser is expat, which limits the expansion of entities.
            root = ElementTree.fromstring(self.text(answer))  # noqa: S314
        except ElementTree.ParseError:
            raise MirrorError("mirror_bad_answer", "a response is not XML") from None
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        return root


def _check_status(answer: requests.Response) -> requests.Response:
    status = answer.status_code
    if status in _ERROR_CODES or status >= 500:
        raise MirrorError(
            _ERROR_CODES.get(status, "mirror_unreachable"), f"it answers {status}{_error_code(answer)}"
        )
    if 300 <= status < 400:
        raise MirrorError("mirror_bad_answer", f"it answers {status}: check the endpoint and the region")
    return answer


def _error_code(answer: requests.Response) -> str:
    """The store's error code, which is short and contains no secret."""
    try:
        start = next(answer.iter_content(4096), b"")
    except (requests.exceptions.RequestException, OSError):
        return ""
    code = start.partition(b"<Code>")[2].partition(b"</Code>")[0].decode("ascii", "replace")
    return f" ({code})" if code.isalnum() and len(code) < 64 else ""

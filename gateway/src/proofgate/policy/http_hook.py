"""A policy that an HTTP service evaluates: one JSON POST for a batch, verdicts in the response.

docs/how-to/write-a-policy-in-python.md has the schema. Redirects and the environment's proxies are ignored.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import os
import ssl
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from proofgate.policy.interface import (
    Allow,
    Deny,
    Flag,
    PolicyRequest,
    Replace,
    Replacement,
    Verdict,
)
from proofgate.timed_http import TimedResponse

VERSION = 1
#: Maximum bytes of a response.
MAX_RESPONSE_BYTES = 8 << 20
MAX_TOKEN_BYTES = 16 << 10


class HttpHookError(Exception):
    """The service returned no verdicts. The message says why, without any text of the response."""


class HttpHook:
    """A policy that the service at `url` evaluates. One exchange takes at most `seconds`.

    The token is read for each batch, and `ca_file` when it has changed, so both can be rotated at run time.
    """

    def __init__(
        self, name: str, url: str, *, seconds: float, ca_file: Path | None, token_file: Path | None
    ) -> None:
        self._name = name
        self._url = urlsplit(url)
        self._seconds = seconds
        self._ca_file = ca_file
        self._token_file = token_file
        self._ca_seen: tuple[int, int, int] | None = None
        self._context: ssl.SSLContext | None = None
        self._connection: http.client.HTTPConnection | None = None

    @property
    def name(self) -> str:
        """The policy's name in the configuration."""
        return self._name

    def evaluate(self, batch: Sequence[PolicyRequest]) -> list[Verdict]:
        """Returns the service's verdicts. Raises HttpHookError, OSError or http.client.HTTPException."""
        document = {
            "version": VERSION,
            "policy": self._name,
            "requests": [asdict(request) for request in batch],
        }
        answer = self._exchange(json.dumps(document).encode(), time.monotonic() + self._seconds)
        match answer:
            case {"verdicts": list() as verdicts}:
                return [_verdict(verdict) for verdict in verdicts]
        raise HttpHookError("the response has no list of verdicts")

    def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, body: bytes, deadline: float) -> Any:
        was_used = self._connection is not None
        try:
            return self._post(body, deadline)
        except ConnectionError:
            self.close()
            if not was_used:
                raise
        except BaseException:
            # The rest of a response must not be read as the next response.
            self.close()
            raise
        # The service may have closed a reused connection. An evaluation has no side effects, so the batch may
        # be sent again.
        return self._exchange(body, deadline)

    def _post(self, body: bytes, deadline: float) -> Any:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection = self._connect(left)
        connection.response_class = functools.partial(  # type: ignore[assignment]
            TimedResponse, deadline=deadline
        )
        target = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        connection.request("POST", target, body, self._headers())
        with connection.getresponse() as response:
            if response.status != http.HTTPStatus.OK:
                raise HttpHookError(f"the response has status {response.status}")
            answer = response.read(MAX_RESPONSE_BYTES + 1)
            if len(answer) > MAX_RESPONSE_BYTES or response.length:
                raise HttpHookError("the response is too long or truncated")
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise HttpHookError("the response is not JSON") from None

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token_file is not None:
            with self._token_file.open("rb") as file:
                token = file.read(MAX_TOKEN_BYTES).decode("ascii").strip()
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _connect(self, seconds: float) -> http.client.HTTPConnection:
        if self._ca_changed():
            self.close()
        if self._connection is None:
            self._connection = self._new_connection(seconds)
            self._connection.connect()
        if self._connection.sock is None:
            self._connection.timeout = seconds
            self._connection.connect()
        with contextlib.suppress(AttributeError):
            self._connection.sock.settimeout(seconds)
        return self._connection

    def _new_connection(self, seconds: float) -> http.client.HTTPConnection:
        host = self._url.hostname or ""
        if self._url.scheme == "https":
            if self._context is None:
                self._context = ssl.create_default_context(cafile=self._ca_file)
            return http.client.HTTPSConnection(host, self._url.port, timeout=seconds, context=self._context)
        return http.client.HTTPConnection(host, self._url.port, timeout=seconds)

    def _ca_changed(self) -> bool:
        if self._ca_file is None:
            return False
        found = os.stat(self._ca_file)  # noqa: PTH116 - follows the links of a mount, as open does
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        changed, self._ca_seen = seen != self._ca_seen, seen
        if changed:
            self._context = None
        return changed


def _verdict(said: Any) -> Verdict:
    match said:
        case {"verdict": "allow", **others} if not others:
            return Allow()
        case {"verdict": "deny", "code": str(code), "reason": str(reason), **others} if not others:
            return Deny(code, reason)
        case {"verdict": "flag", "rule": str(rule), "score": int(score), **others} if not others:
            return Flag(rule, score)
        case {"verdict": "replace", "rule": str(rule), "replacements": list(parts), **others}:
            match others:
                case {"reversible": bool(reversible)} if len(others) == 1:
                    return Replace(rule, [_replacement(part) for part in parts], reversible)
                case {} if not others:
                    return Replace(rule, [_replacement(part) for part in parts])
    raise HttpHookError("the response has an invalid verdict")


def _replacement(said: Any) -> Replacement:
    match said:
        case {"text": int(text), "start": int(start), "end": int(end), "by": str(by), **others} if not others:
            return Replacement(text, start, end, by)
    raise HttpHookError("the response has an invalid replacement")

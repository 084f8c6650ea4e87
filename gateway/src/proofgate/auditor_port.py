"""Client for the auditor's log at its port.

The server may be anybody. An incomplete, late or too large response counts as none, and no content is trusted
before it matches what the auditor signed. So TLS is not needed: an attacker on the network can withhold a
response or send an older one, but cannot forge one.
"""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

from proofgate.mirror.aggregate import tile_path
from proofgate.timed_http import TimedConnection

_CONNECT_SECONDS = 3.0
_RESPONSE_TIMEOUT_SECONDS = 10.0
_MAX_CHECKPOINT_BYTES = 1 << 16
#: Maximum bytes of a bundle: 256 entries, each after its length in two bytes.
_MAX_BUNDLE_BYTES = 256 * (2 + 0xFFFF)
_MAX_ERROR_BYTES = 1 << 16


class AuditorUnavailableError(Exception):
    """The auditor gave no usable response."""


class AuditorPort:
    """The log of the auditor at an http(s) URL. For use by one thread. Raises ValueError for an invalid
    URL."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{url} is not an http(s) URL")
        if parts.username is not None or parts.password is not None:
            raise ValueError(
                "the auditor's URL must not contain a password: the auditor's log is read without a password"
            )
        self._url = url
        self._connection = TimedConnection(parts)

    def __str__(self) -> str:
        return self._url

    def checkpoint(self) -> bytes:
        """Returns the newest checkpoint. Raises AuditorUnavailableError, also if none is published yet."""
        return self._get("/checkpoint", _MAX_CHECKPOINT_BYTES)

    def bundle(self, number: int, count: int) -> bytes:
        """Returns the bundle `number` of `count` entries. Raises AuditorUnavailableError."""
        return self._get(f"/{tile_path('entries', number, count)}", _MAX_BUNDLE_BYTES)

    def _get(self, target: str, most: int) -> bytes:
        try:
            return self._exchange(target, most)
        except (OSError, UnicodeError, http.client.HTTPException) as error:
            self._connection.close()
            raise AuditorUnavailableError(f"the auditor at {self._url} {_error_reason(error)}") from None
        except AuditorUnavailableError:
            self._connection.close()
            raise

    def _exchange(self, target: str, most: int) -> bytes:
        with self._connection.get(target, {}, _CONNECT_SECONDS, _RESPONSE_TIMEOUT_SECONDS) as response:
            limit = most if response.status == http.client.OK else _MAX_ERROR_BYTES
            body = response.read(limit + 1)
            if len(body) > limit or response.length:
                raise AuditorUnavailableError(
                    f"the auditor at {self._url} sent a response that is too large or incomplete"
                )
            if response.status != http.client.OK:
                status = f"status {response.status} ({_code(body)})"
                raise AuditorUnavailableError(f"the auditor at {self._url} answered with {status}")
            return body


def _code(body: bytes) -> str:
    try:
        code = str(json.loads(body)["error"]["code"])
    except (ValueError, RecursionError, KeyError, TypeError):
        return "no code"
    return code if code.replace("_", "").isalnum() and code.isascii() and len(code) <= 64 else "no code"


def _error_reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"sent no complete response within {_RESPONSE_TIMEOUT_SECONDS:g} s"
    if isinstance(error, OSError):
        return f"cannot be reached: {error.strerror or 'the connection failed'}"
    if isinstance(error, UnicodeError):
        return "cannot be reached: its host name is not valid"
    return "sent a response that is not HTTP"

"""Requests to endpoints that issue credentials, and the evaluation of their responses.

Responses are limited in size and time. Redirects, and proxies and files from the environment, are ignored. A
refusal is reported by the endpoint's short code, never by its text, which may repeat the request.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from proofgate.config.auth import is_confidential
from proofgate.config.files import read_bounded
from proofgate.identity.issued_credentials import IdentityError
from proofgate.timed_request import HttpRequestError, HttpRequestLimits, HttpResponse, send_http_request

#: Seconds to connect to each address, and again for the rest of one exchange.
TIMEOUT_SECONDS = 5.0
MAX_RESPONSE_BYTES = 1 << 16
#: Maximum bytes of a ServiceAccount's token. Normal tokens have a few kilobytes.
MAX_TOKEN_BYTES = 1 << 16
#: Clock difference above which error messages mention the clock: it can cause refused signatures.
MAX_CLOCK_SKEW_SECONDS = 60
#: A year, in seconds: longer than any cloud's credentials last.
_MAX_LIFETIME_SECONDS = 31_622_400
_FORM_HEADERS = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
#: Error codes are words. Secrets from the request are longer or contain other characters.
_CODE = re.compile(r"[A-Za-z][A-Za-z_.]{1,63}")


@dataclass(frozen=True)
class EndpointResponse:
    """A successful response, how long it took, and the time of its clock."""

    body: bytes
    elapsed_seconds: float
    now: datetime
    """The time of the response by the clock of the server, or by the local clock if the response has no date."""

    def document(self) -> Mapping[str, Any]:
        """Parses the body as a JSON object. Raises IdentityError."""
        return _object(self.body)

    def seconds_until(self, instant: object) -> float:
        """Seconds from now until an RFC 3339 time in the response, by the server's clock.

        The local clock may be wrong. Raises IdentityError.
        """
        try:
            until = datetime.fromisoformat(str(instant))
        except ValueError:
            raise IdentityError("bad_answer", "the response has an invalid expiry time") from None
        if until.tzinfo is None:
            until = until.replace(tzinfo=UTC)
        return self.seconds_left((until - self.now).total_seconds())

    def seconds_left(self, lifetime: object) -> float:
        """The remaining seconds of a lifetime that started before the response arrived. Raises
        IdentityError."""
        if isinstance(lifetime, str) and re.fullmatch(r"[0-9]{1,9}", lifetime):
            lifetime = int(lifetime)
        if not isinstance(lifetime, (int, float)) or isinstance(lifetime, bool):
            raise IdentityError("bad_answer", "the response has no expiry time for its credentials")
        # Compared before the conversion to float, because the number in the response may exceed the range of
        # float.
        if not self.elapsed_seconds < lifetime < _MAX_LIFETIME_SECONDS:
            raise IdentityError(
                "bad_answer", "the response has credentials that have expired or never expire"
            )
        return float(lifetime) - self.elapsed_seconds


def post_form(
    url: str, fields: Mapping[str, str], code: Callable[[HttpResponse], str | None]
) -> EndpointResponse:
    """Posts a form and returns the response. `code` extracts the code of a refusal. Blocks; raises
    IdentityError."""
    return send_request("POST", url, _FORM_HEADERS, urlencode(fields).encode(), code)


def send_request(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | None,
    code: Callable[[HttpResponse], str | None],
    also: frozenset[str] = frozenset(),
) -> EndpointResponse:
    """Sends a request and returns a successful response. Plain http is allowed only to this machine and to
    the addresses in `also`.

    `code` extracts the code of a refusal. Blocks; raises IdentityError.
    """
    host = urlsplit(url).hostname or "the endpoint"
    if not is_confidential(url, also):
        raise IdentityError("not_configured", f"{host} must be called over https")
    began = time.monotonic()
    try:
        answer = send_http_request(
            method, url, headers, HttpRequestLimits(TIMEOUT_SECONDS, MAX_RESPONSE_BYTES), body
        )
    except HttpRequestError as error:
        raise IdentityError(error.code, f"{host}: {error}") from None
    seconds = time.monotonic() - began
    if answer.status == 200:
        return EndpointResponse(answer.body, seconds, _response_time(answer))
    raise _refused_error(host, answer, code)


def _refused_error(
    host: str, answer: HttpResponse, code: Callable[[HttpResponse], str | None]
) -> IdentityError:
    try:
        found = code(answer)
    except (IdentityError, LookupError, TypeError, ValueError):
        found = None
    told = f" ({found})" if found else ""
    skew = (datetime.now(UTC) - _response_time(answer)).total_seconds()
    clock = f"; this machine's clock differs by {skew:+.0f} s" if abs(skew) > MAX_CLOCK_SKEW_SECONDS else ""
    passing = answer.status >= 500 or answer.status == 429
    return IdentityError(
        "unavailable" if passing else "refused", f"{host} answers HTTP {answer.status}{told}{clock}"
    )


def oauth_code(answer: HttpResponse) -> str | None:
    """The error code in the format of OAuth 2.0 (RFC 6749, section 5.2) or of Google's APIs; None without
    one."""
    error = _object(answer.body).get("error")
    return safe_code(error.get("status") if isinstance(error, Mapping) else error)


def safe_code(found: object) -> str | None:
    """Returns the code if it can be logged safely, otherwise None."""
    return found if isinstance(found, str) and _CODE.fullmatch(found) else None


def read_projected_token(path: str | None, variable: str | None) -> str:
    """Reads the token of the worker's ServiceAccount from the file at `path`, or else from the file that the
    environment variable names. The file is read each time, because the kubelet replaces it long before the
    token expires. Raises IdentityError."""
    named = path or (os.environ.get(variable) if variable else None)
    if not named:
        raise IdentityError("not_configured", f"neither auth.tokenFile nor {variable} names the token's file")
    try:
        token = read_bounded(Path(named), MAX_TOKEN_BYTES).decode("ascii").strip()
    except OSError as error:
        raise IdentityError("token_file", f"{named} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        token = ""
    if not 0 < len(token) < MAX_TOKEN_BYTES or not re.fullmatch(r"[!-~]+", token):
        raise IdentityError("token_file", f"{named} contains no token")
    return token


def require_setting(value: str | None, field: str, variable: str) -> str:
    """Returns a value of the configuration, or else of the environment. Raises IdentityError if both are
    missing."""
    found = value or os.environ.get(variable)
    if not found:
        raise IdentityError("not_configured", f"neither auth.{field} nor {variable} is set")
    return found


def require_text(document: Mapping[str, Any], name: str) -> str:
    """Returns a required text field of a response. Raises IdentityError."""
    found = document.get(name)
    if not isinstance(found, str) or not re.fullmatch(r"[!-~]+", found):
        raise IdentityError("bad_answer", f"the response has no {name}")
    return found


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise IdentityError("bad_answer", "the response is not a JSON object")
    return document


def _response_time(answer: HttpResponse) -> datetime:
    try:
        time_there = parsedate_to_datetime(answer.date)
    except (ValueError, OverflowError):
        return datetime.now(UTC)
    return time_there if time_there.tzinfo else time_there.replace(tzinfo=UTC)

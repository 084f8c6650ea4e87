"""Client for one request to the admin port of a worker."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

_MAX_RESPONSE_BYTES = 16 << 20
_MAX_ERROR_BYTES = 1 << 16


class AdminError(Exception):
    """The admin port gave no response: the URL is wrong, the token is unreadable, or the worker is
    unreachable."""


class AdminRefusedError(AdminError):
    """The worker refused the request. The text is the worker's message and code."""


def admin_get(admin: str, path: str, timeout_seconds: float, token_file: Path | None = None) -> str:
    """Returns the response to `GET <admin><path>` as text. Raises AdminError and AdminRefusedError."""
    try:
        parts = urllib.parse.urlsplit(admin)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise AdminError(f"{admin} is not an http URL: write for example http://127.0.0.1:9090")
    request = urllib.request.Request(admin.rstrip("/") + path)  # noqa: S310 - the scheme is checked above
    try:
        if token_file is not None:
            request.add_header("Authorization", f"Bearer {_token(token_file)}")
        with urllib.request.urlopen(request, timeout=timeout_seconds) as response:  # noqa: S310 - as above
            answer: bytes = response.read(_MAX_RESPONSE_BYTES)
            return answer.decode()
    except urllib.error.HTTPError as error:
        with error:
            raise AdminRefusedError(_refused_error(error)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise AdminError(f"the worker at {admin} does not answer: {reason}") from None


def _token(path: Path) -> str:
    try:
        token = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise AdminError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise AdminError(f"{path} is not a text file") from None
    # For any other content, the HTTP library would raise an error that contains the whole token.
    if not token.isprintable() or " " in token:
        raise AdminError(f"{path} does not contain exactly one token on one line")
    return token


def _refused_error(error: urllib.error.HTTPError) -> str:
    try:
        detail = json.loads(error.read(_MAX_ERROR_BYTES))["error"]
        return f"{detail['message']} [{detail['code']}]"
    except (ValueError, KeyError, TypeError):
        return f"HTTP {error.code}"

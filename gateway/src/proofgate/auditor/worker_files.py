"""One worker's ledger folder, read from its admin port.

The server may be broken or lie. A response that is incomplete, late, or of another size than requested counts
as no response. No content is trusted before it is verified.
"""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path
from urllib.parse import quote, urlsplit

from proofgate.reading.files import MAX_NAMES
from proofgate.timed_http import TimedConnection

CONNECT_SECONDS = 3.0
RESPONSE_TIMEOUT_SECONDS = 5.0
#: Maximum seconds to read from one worker in one poll, so that a slow worker does not delay other workers.
PASS_BUDGET_SECONDS = 60.0
#: Maximum bytes of a file that one request reads.
BLOCK_BYTES = 1 << 20
#: Maximum bytes of a listing. It is parsed in memory, and all workers share this memory.
_MAX_LISTING_BYTES = 2 << 20
_MAX_ERROR_BYTES = 1 << 16
_LENGTH = "Proofgate-Length"
_NO_SUCH_FILE_CODE = "no_such_file"
_UNREADABLE_CODES = ("ledger_io", "too_many_names")


class WorkerError(OSError):
    """The worker gave no usable response. The requested file may still exist."""


class UnreadableError(PermissionError):
    """The worker reports that its system cannot read the file or folder."""


class WorkerFiles:
    """Reads from one worker over one connection. For use by one thread at a time."""

    def __init__(self, url: str, token_file: Path | None, look_seconds: float = PASS_BUDGET_SECONDS) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{url} is not an http(s) URL")
        if parts.username is not None or parts.password is not None:
            raise ValueError("the URL of a worker must not contain a password: use --worker-token")
        self._connection = TimedConnection(parts)
        self._token_file = token_file
        self._headers: dict[str, str] = {}
        self._closed = False
        self._look_seconds = look_seconds
        self._spent = 0.0

    def start_round(self) -> None:
        """Starts a pass: reads the token and resets the used time. Raises WorkerError."""
        self._spent = 0.0
        if self._token_file is None:
            return
        try:
            token = self._token_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            raise WorkerError(f"{self._token_file} cannot be read") from None
        if not token.isprintable() or " " in token or not token:
            raise WorkerError(f"{self._token_file} does not contain exactly one token on one line")
        self._headers = {"Authorization": f"Bearer {token}"}

    def list_folder(self, folder: str) -> list[str]:
        """Returns the names in a folder. Raises FileNotFoundError if it does not exist, UnreadableError,
        WorkerError."""
        body, _ = self._get(f"/ledger/names?path={quote(folder)}", _MAX_LISTING_BYTES)
        try:
            document = json.loads(body)
            names = document["names"]
        except (ValueError, RecursionError, KeyError, TypeError):
            raise WorkerError("its response is not a list of names") from None
        if not isinstance(names, list) or len(names) > MAX_NAMES:
            raise WorkerError("its response is not a list of names")
        if not all(isinstance(name, str) and 0 < len(name) <= 255 and "/" not in name for name in names):
            raise WorkerError("its response has invalid names")
        return sorted(set(names))

    def read(self, path: str, offset: int, most: int) -> tuple[int, bytes]:
        """Returns the length of a file and its bytes from `offset`: the smaller of `most` and BLOCK_BYTES,
        fewer only at its end.

        Raises FileNotFoundError if the file does not exist, UnreadableError, WorkerError.
        """
        most = min(most, BLOCK_BYTES)
        body, told = self._get(f"/ledger/file?path={quote(path)}&offset={offset}&most={most}", most)
        if told is None or not told.isascii() or not told.isdigit() or len(told) > 19:
            raise WorkerError("its response lacks the length of the file")
        length = int(told)
        if len(body) != max(0, min(most, length - offset)):
            message = f"it returned {len(body)} bytes of a file of {length} bytes, from offset {offset}"
            raise WorkerError(message)
        return length, body

    def close(self) -> None:
        """Closes the connection permanently."""
        self._closed = True
        self._connection.close()

    def _get(self, target: str, most: int) -> tuple[bytes, str | None]:
        began = time.monotonic()
        if self._closed or self._spent > self._look_seconds:
            raise WorkerError(f"reading its files took more than {self._look_seconds:g} s of one poll")
        try:
            return self._exchange(target, most)
        except (OSError, UnicodeError, http.client.HTTPException) as error:
            if isinstance(error, FileNotFoundError | UnreadableError):
                raise
            self._connection.close()
            raise _worker_error(error) from None
        finally:
            self._spent += time.monotonic() - began

    def _exchange(self, target: str, most: int) -> tuple[bytes, str | None]:
        response = self._connection.get(target, self._headers, CONNECT_SECONDS, RESPONSE_TIMEOUT_SECONDS)
        with response:
            limit = most if response.status == http.client.OK else _MAX_ERROR_BYTES
            body = response.read(limit + 1)
            if len(body) > limit or response.length:
                raise WorkerError("its response has the wrong length")
            if response.status != http.client.OK:
                raise _refused_error(response.status, body)
            return body, response.getheader(_LENGTH)


def _refused_error(status: int, body: bytes) -> OSError:
    try:
        code = str(json.loads(body)["error"]["code"])
    except (ValueError, RecursionError, KeyError, TypeError):
        code = ""
    # Another server, or a worker without this route, also answers 404. Only this code means that the file
    # does not exist.
    if status == http.client.NOT_FOUND and code == _NO_SUCH_FILE_CODE:
        return FileNotFoundError("it does not exist")
    if status == http.client.SERVICE_UNAVAILABLE and code in _UNREADABLE_CODES:
        return UnreadableError(f"the worker cannot read a file of its ledger ({code})")
    known = code if code.replace("_", "").isalnum() and code.isascii() and len(code) <= 64 else "no code"
    return WorkerError(f"it answered with status {status} ({known})")


def _worker_error(error: Exception) -> WorkerError:
    if isinstance(error, WorkerError):
        return error
    if isinstance(error, TimeoutError):
        return WorkerError(f"it sent no complete response within {RESPONSE_TIMEOUT_SECONDS:g} s")
    if isinstance(error, OSError):
        return WorkerError(f"it cannot be reached: {error.strerror or 'the connection failed'}")
    if isinstance(error, UnicodeError):
        return WorkerError("it cannot be reached: its host name is not valid")
    return WorkerError("its response is not HTTP")

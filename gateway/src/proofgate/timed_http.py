"""HTTP responses with a deadline for the complete response, regardless of how slowly the bytes arrive."""

from __future__ import annotations

import functools
import http.client
import io
import socket
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult


class TimedResponse(http.client.HTTPResponse):
    """A response whose reading raises TimeoutError at `deadline`, a time of `time.monotonic()`."""

    def __init__(self, sock: socket.socket, *args: Any, deadline: float, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_TimedReader(sock, deadline))


class _TimedReader(io.RawIOBase):
    def __init__(self, sock: socket.socket, deadline: float) -> None:
        # This file keeps the socket open, because the connection releases it after the head of its last
        # response is read.
        self._file = sock.makefile("rb", buffering=0)
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


class TimedConnection:
    """A persistent connection to an http(s) URL, which is given as its parts. For use by one thread.

    Raises ValueError for an invalid port.
    """

    def __init__(self, parts: SplitResult) -> None:
        made = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        # Access to the port raises an error if it is invalid.
        self._connection = made(parts.hostname or "", parts.port)
        self._path = parts.path.rstrip("/")
        self._fresh = True

    def get(
        self, target: str, headers: Mapping[str, str], connect_seconds: float, answer_seconds: float
    ) -> http.client.HTTPResponse:
        """Sends a GET and returns the response. Reading it raises TimeoutError after `answer_seconds`.

        Raises OSError, UnicodeError and HTTPException; call `close` then.
        """
        fresh = self._fresh
        try:
            return self._request(target, headers, connect_seconds, answer_seconds)
        except (ConnectionError, http.client.BadStatusLine):
            if fresh:
                raise
            # The server has closed the connection, which was idle for some seconds.
            self.close()
            return self._request(target, headers, connect_seconds, answer_seconds)

    def _request(
        self, target: str, headers: Mapping[str, str], connect_seconds: float, answer_seconds: float
    ) -> http.client.HTTPResponse:
        if self._fresh:
            self._connection.timeout = connect_seconds
            self._connection.connect()
            self._fresh = False
        self._connection.response_class = functools.partial(  # type: ignore[assignment]
            TimedResponse, deadline=time.monotonic() + answer_seconds
        )
        self._connection.request("GET", self._path + target, headers=dict(headers))
        return self._connection.getresponse()

    def close(self) -> None:
        """Closes the connection. The next request opens a new one."""
        self._connection.close()
        self._fresh = True

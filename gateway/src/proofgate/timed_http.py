"""Answers of HTTP that have to be read whole by a deadline, however slowly their bytes drip."""

from __future__ import annotations

import http.client
import io
import socket
import time
from typing import Any


class TimedResponse(http.client.HTTPResponse):
    """A response whose reading raises TimeoutError at `deadline`, a time of `time.monotonic()`."""

    def __init__(self, sock: socket.socket, *args: Any, deadline: float, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_TimedReader(sock, deadline))


class _TimedReader(io.RawIOBase):
    def __init__(self, sock: socket.socket, deadline: float) -> None:
        # A file keeps the socket open: the connection lets go of it once the head of its last answer is read.
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

"""The routes of the admin port with which an auditor reads a worker's ledger folder.

They run in a few threads with the main thread's priority, which is the lowest, so they do not affect traffic
and probes.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from proofgate.http_errors import ApiError
from proofgate.reading.files import MAX_READ_BYTES, LedgerFiles, LedgerReadError

#: Maximum number of concurrent reads. Each read holds a block of its response until the block is sent.
MAX_CONCURRENT_READS = 4
LENGTH_HEADER = "Proofgate-Length"
#: Seconds without a poll after which an auditor no longer counts as following this worker.
_FOLLOWER_TIMEOUT_SECONDS = 10.0
#: Polls after the seal until the whole log was read: the current poll, and a poll that starts after the seal.
_REQUIRED_PASSES = 2
_STATUS = {
    "not_evidence": HTTPStatus.FORBIDDEN,
    "no_such_file": HTTPStatus.NOT_FOUND,
    "too_many_names": HTTPStatus.SERVICE_UNAVAILABLE,
    "ledger_io": HTTPStatus.SERVICE_UNAVAILABLE,
}


class LedgerReadRoutes:
    """The routes of a worker's folder, and the state of its reading."""

    def __init__(self, ledger: Path) -> None:
        self._files = LedgerFiles(ledger)
        self._slots = threading.BoundedSemaphore(MAX_CONCURRENT_READS)
        self._lock = threading.Lock()
        self._results: Counter[str] = Counter()
        self._bytes = 0
        #: Number of listings of the ledger, and the time of the last listing. Each poll of an auditor starts with one.
        self._looks = 0
        self._last_look = float("-inf")

    def add_routes(self, app: FastAPI, authorize: Callable[[Request], None]) -> None:
        """Adds the routes. `authorize` raises ApiError for requests that may not read."""

        @app.get("/ledger/names")
        def names(request: Request, path: Annotated[str, Query(max_length=128)] = "") -> Response:
            authorize(request)
            if not path:
                with self._lock:
                    self._looks += 1
                    self._last_look = time.monotonic()
            return self._respond(lambda: JSONResponse({"names": self._files.names(path)}))

        @app.get("/ledger/file")
        def file(
            request: Request,
            path: Annotated[str, Query(max_length=256)],
            offset: Annotated[int, Query(ge=0, lt=1 << 63)] = 0,
            most: Annotated[int, Query(ge=0, le=MAX_READ_BYTES)] = MAX_READ_BYTES,
        ) -> Response:
            authorize(request)

            def read() -> Response:
                length, content = self._files.read(path, offset, most)
                with self._lock:
                    self._bytes += len(content)
                headers = {LENGTH_HEADER: str(length)}
                return Response(content, media_type="application/octet-stream", headers=headers)

            return self._respond(read)

    def _respond(self, read: Callable[[], Response]) -> Response:
        if not self._slots.acquire(blocking=False):
            self._count("busy")
            message = f"this worker serves at most {MAX_CONCURRENT_READS} readers of its ledger at a time; try again"
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "busy", message, {"Retry-After": "1"})
        try:
            answer = _SlotReleasingResponse(read(), self._slots.release)
        except BaseException as error:
            self._slots.release()
            if not isinstance(error, LedgerReadError):
                raise
            self._count(error.code)
            raise ApiError(_STATUS[error.code], error.code, str(error)) from None
        self._count("ok")
        return answer

    def _count(self, result: str) -> None:
        with self._lock:
            self._results[result] += 1

    @property
    def pass_count(self) -> int:
        """The number of passes that an auditor has started."""
        with self._lock:
            return self._looks

    def has_active_auditor(self) -> bool:
        """Whether an auditor has read recently."""
        with self._lock:
            return time.monotonic() - self._last_look < _FOLLOWER_TIMEOUT_SECONDS

    def is_fully_read_since(self, looks: int) -> bool:
        """Whether the content at the time when `looks` passes had started has been read completely, as far as
        the worker can know."""
        return not self.has_active_auditor() or self.pass_count >= looks + _REQUIRED_PASSES

    def metrics(self) -> str:
        """Metrics of the reading, as Prometheus text; empty before the first read."""
        with self._lock:
            if not self._results:
                return ""
            name = "proofgate_ledger_reads"
            lines = [
                f"# HELP {name} Responses to readers of the worker's ledger folder, by result.",
                f"# TYPE {name} counter",
                *(f'{name}_total{{result="{of}"}} {count}' for of, count in sorted(self._results.items())),
                f"# HELP {name}_bytes Bytes of files in responses to readers of the worker's ledger folder.",
                f"# TYPE {name}_bytes counter",
                f"{name}_bytes_total {self._bytes}",
            ]
        return "".join(f"{line}\n" for line in lines)


class _SlotReleasingResponse(Response):
    """A response that calls `done` when it was passed to the system, or when its reader has disconnected.

    The end of the body is sent separately. It waits until the transport has accepted the rest, so that a
    reader that reads nothing holds its own slot, and nothing else.
    """

    def __init__(self, answer: Response, done: Callable[[], None]) -> None:
        super().__init__(answer.body, answer.status_code)
        self.raw_headers = answer.raw_headers
        self._done = done

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        try:
            await send(start)
            await send({"type": "http.response.body", "body": self.body, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._done()

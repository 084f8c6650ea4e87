"""The index over the auditor's port, for readers that have a key of their own. What they read is recorded
first."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse

from proofgate.http_errors import Refusal
from proofgate.index.access_log import AccessLog
from proofgate.index.errors import IndexUnusableError
from proofgate.index.filter import NAMES, Filter
from proofgate.index.query import MOST_ROWS, Questions
from proofgate.index.readers import Reader, Readers, ReadersError
from proofgate.index.schema import time_text

log = logging.getLogger("proofgate.index")

_STATUS = {
    "bad_filter": HTTPStatus.BAD_REQUEST,
    "bad_cursor": HTTPStatus.BAD_REQUEST,
    "cursor_differs": HTTPStatus.BAD_REQUEST,
    "cursor_expired": HTTPStatus.GONE,
    "day_pruned": HTTPStatus.GONE,
    "question_too_long": HTTPStatus.SERVICE_UNAVAILABLE,
}
#: For one question.
SECONDS = 10.0
#: Of a question's path and query, in characters: all of it is recorded.
_LONGEST_QUESTION = 4096
#: Questions at a time: other readers of the port need threads too.
AT_ONCE = 4
_PRIVATE = {"Cache-Control": "no-store"}

_Limit = Annotated[int, Query(ge=1, le=MOST_ROWS)]
_Flag = Annotated[bool, Query()]


class Desk:
    """Answers readers from an index."""

    def __init__(self, index: Path, readers: Readers, access_log: AccessLog) -> None:
        self._index, self._readers, self._access_log = index, readers, access_log
        #: How the log of who read what stands.
        self.reads = access_log.head
        self._places = threading.BoundedSemaphore(AT_ONCE)

    def add_routes(self, app: FastAPI) -> None:
        """Adds `GET /v1/exchanges` and `GET /v1/exchanges/{id}`."""

        # These read and sync files: a thread of the pool waits for them.
        @app.get("/v1/exchanges")
        def exchanges(request: Request, limit: _Limit = 50, newest: _Flag = False) -> JSONResponse:
            reader = self._reader(request)
            asked_for = dict(request.query_params)
            return self._answer(reader, asked_for, lambda: self._page(reader, request, limit, newest))

        @app.get("/v1/exchanges/{request_id}")
        def exchange(request: Request, request_id: str) -> JSONResponse:
            reader = self._reader(request)
            return self._answer(reader, {"id": request_id}, lambda: self._one(reader, request_id))

    def _reader(self, request: Request) -> Reader:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        try:
            reader = self._readers.find(key) if scheme.lower() == "bearer" and key else None
        except ReadersError:
            raise Refusal(
                HTTPStatus.SERVICE_UNAVAILABLE, ReadersError.code, "the file of readers cannot be used now"
            ) from None
        if reader is None:
            raise Refusal(
                HTTPStatus.UNAUTHORIZED,
                "not_a_reader",
                "send the key of a reader as `Authorization: Bearer KEY`; keys of the gateway are none",
                {"WWW-Authenticate": "Bearer"},
            )
        if len(request.url.path) + len(request.url.query) > _LONGEST_QUESTION:
            message = f"a question has at most {_LONGEST_QUESTION} characters"
            raise Refusal(HTTPStatus.REQUEST_URI_TOO_LONG, "question_too_large", message)
        return reader

    def _page(self, reader: Reader, request: Request, limit: int, newest: bool) -> dict[str, Any]:
        asked = dict(request.query_params)
        unknown = asked.keys() - {*NAMES, "limit", "newest", "after"}
        repeated = len(request.query_params.multi_items()) != len(asked)
        if unknown or repeated:
            raise IndexUnusableError("a parameter is repeated or not known", "bad_filter")
        wanted = Filter.parse({name: asked.get(name) for name in NAMES}, newest=newest)
        if reader.tenant is not None:
            if wanted.tenant not in (None, reader.tenant):
                raise Refusal(
                    HTTPStatus.FORBIDDEN,
                    "other_tenant",
                    "this reader sees the exchanges of its own tenant only",
                )
            wanted = replace(wanted, tenant=reader.tenant)
        with Questions(self._index, SECONDS) as questions:
            page = questions.page(wanted, limit, asked.get("after"))
        return {"exchanges": [row.facts for row in page.rows], "next": page.after}

    def _one(self, reader: Reader, request_id: str) -> dict[str, Any]:
        wanted = Filter.parse({"id": request_id, "tenant": reader.tenant})
        with Questions(self._index, SECONDS) as questions:
            row = questions.find(str(wanted.id), wanted.tenant)
        if row is None:
            # Another tenant's is as one that is not there.
            raise Refusal(
                HTTPStatus.NOT_FOUND, "no_such_exchange", "the index has no such exchange for this reader"
            )
        return {"exchanges": [row.facts]}

    @contextmanager
    def _place(self) -> Iterator[None]:
        if not self._places.acquire(blocking=False):
            message = "others are asking: ask again in a moment"
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "busy", message)
        try:
            yield
        finally:
            self._places.release()

    def _answer(
        self, reader: Reader, asked: dict[str, str], ask: Callable[[], dict[str, Any]]
    ) -> JSONResponse:
        """Asks, records that it was asked and what came of it, and answers."""
        refused: Refusal | None = None
        answer: dict[str, Any] = {"exchanges": []}
        try:
            with self._place():
                answer = ask()
        except IndexUnusableError as error:
            status = _STATUS.get(error.code, HTTPStatus.SERVICE_UNAVAILABLE)
            message = str(error)
            if error.code not in _STATUS:
                log.error("the index cannot be asked: %s [%s]", error, error.code)  # noqa: TRY400
                message = "the index cannot be asked now"
            refused = Refusal(status, error.code, message)
        except Refusal as error:
            refused = error
        entry = {
            "time": time_text(time.time_ns() // 1000),
            "reader": reader.name,
            "tenant": reader.tenant,
            "asked": asked,
            "rows": len(answer["exchanges"]),
            "refused": None if refused is None else refused.code,
        }
        try:
            self._access_log.add(entry)
        except OSError as error:
            log.error("nothing is answered: the access log cannot be written: %s", error)  # noqa: TRY400
            raise Refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "access_log_unavailable",
                "what is read cannot be recorded now",
            ) from None
        if refused is not None:
            raise refused
        return JSONResponse(answer, headers=_PRIVATE)

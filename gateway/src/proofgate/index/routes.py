"""The routes of the index on the auditor's port, for authenticated readers. Each read is recorded before the
response."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from proofgate import _core
from proofgate.http_errors import ApiError
from proofgate.index.access_log import AccessLog, AccessLogFullError, AccessLogHead
from proofgate.index.access_log_quota import SIGN_INS, LineOwner, owner_for_reader
from proofgate.index.analysis import read_analysis
from proofgate.index.audited_index import IndexStatus
from proofgate.index.budgets import budgets
from proofgate.index.errors import IndexUnusableError
from proofgate.index.failed_sign_ins import FailedSignIns
from proofgate.index.filter import FILTER_NAMES, Filter
from proofgate.index.known_names import known_names
from proofgate.index.overview import overview
from proofgate.index.port_export import ExportFactory, ExportFile
from proofgate.index.query import MAX_ROWS, ExchangeRow, IndexSnapshot
from proofgate.index.query_limiter import QueryLimiter, TooManyQueriesError
from proofgate.index.readers import Reader, ReadersFile
from proofgate.index.refused_queries import WINDOW_SECONDS, RefusedQueries, shorten_query
from proofgate.index.repeated_queries import RECORD_INTERVAL_SECONDS, RepeatedQueries
from proofgate.index.schema import format_time
from proofgate.index.sign_in import NO_STORE_HEADERS, ReaderAuthenticator, uncached_error
from proofgate.index.sign_in_links import SignInLinks
from proofgate.index.stored_records import receipt
from proofgate.index.totals import tenants

if TYPE_CHECKING:
    from proofgate.index.oidc import OidcClient

log = logging.getLogger("proofgate.index")

_STATUS_BY_CODE = {
    "bad_filter": HTTPStatus.BAD_REQUEST,
    "bad_cursor": HTTPStatus.BAD_REQUEST,
    "cursor_differs": HTTPStatus.BAD_REQUEST,
    "cursor_expired": HTTPStatus.GONE,
    "day_pruned": HTTPStatus.GONE,
    "question_too_long": HTTPStatus.SERVICE_UNAVAILABLE,
    "log_removed": HTTPStatus.GONE,
    "busy": HTTPStatus.SERVICE_UNAVAILABLE,
    "export_too_large": HTTPStatus.BAD_REQUEST,
    "index_full": HTTPStatus.SERVICE_UNAVAILABLE,
}
#: Maximum seconds of one query.
QUERY_TIMEOUT_SECONDS = 10.0
#: Maximum number of characters of a query's path and parameters, which are recorded completely.
_MAX_QUERY_LENGTH = 4096
_COUNTED_LISTS = ("exchanges", "tenants", "records", "windows", "answers", "exported")

_Limit = Annotated[int, Query(ge=1, le=MAX_ROWS)]
_Flag = Annotated[bool, Query()]


class _FileResponse(StreamingResponse):
    """A response with an export file, which is closed even if the client disconnects before the first
    byte."""

    def __init__(self, file: ExportFile) -> None:
        super().__init__(
            file.chunks(), media_type=file.media_type, headers={**NO_STORE_HEADERS, **file.headers()}
        )
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


class ReaderPort:
    """Serves readers data from an index and records from the ledger."""

    def __init__(
        self,
        index: Path,
        ledger: Path,
        readers: ReadersFile,
        access_log: AccessLog,
        standing: Callable[[], IndexStatus] = IndexStatus,
        export_key: str | None = None,
        oidc: OidcClient | None = None,
        links: SignInLinks | None = None,
    ) -> None:
        """`standing` returns the status of the index. `export_key` signs exports. `oidc` and `links` are
        optional ways to sign in."""
        self._index, self._ledger, self._standing = index, ledger, standing
        self._readers, self._access_log = readers, access_log
        #: Failed sign-ins.
        self.sign_ins = FailedSignIns(lambda entry: access_log.add(entry, LineOwner(SIGN_INS)))
        self._sign_in = ReaderAuthenticator(readers, self.sign_ins, oidc, links)
        #: Number of responses refused because the reader's part of the access log is full.
        self.quota_refusals = 0
        self._refused = RefusedQueries()
        #: Readers whose part of the access log is full: since when (Unix microseconds), and why.
        self._full: dict[tuple[str, str | None, str | None], tuple[int, str]] = {}
        self._places = QueryLimiter()
        self._exports = ExportFactory(index, ledger, export_key)
        self._watching = RepeatedQueries()

    @property
    def access_log(self) -> AccessLog:
        """The access log."""
        return self._access_log

    def access_log_head(self) -> AccessLogHead:
        """Returns the head of the access log. Summary lines that are due are written first."""
        self.flush()
        return self._access_log.head()

    def flush(self, *, ending: bool = False) -> None:
        """Writes the summary lines of failed sign-ins and refused queries."""
        self.sign_ins.flush(ending=ending)
        for reader, counted in self._refused.take_counts(ending=ending):
            entry = {**self._entry(reader), "refused_more": counted, "for_seconds": WINDOW_SECONDS}
            try:
                self._add(reader, entry)
            except OSError as error:
                log.error("refused queries cannot be recorded: %s", error)  # noqa: TRY400 - it is told

    def findings(self) -> list[dict[str, Any]]:
        """Findings about readers that get no responses because their part of the access log is full."""
        return [
            {
                "code": "access_log_full",
                "origin": name,
                "shard": "",
                "since": since,
                "message": f"this reader gets no responses: {why}",
                "verdict": "incomplete",
            }
            for (name, *_), (since, why) in sorted(self._full.items(), key=lambda one: one[0][0])
        ]

    def _add(self, reader: Reader, entry: dict[str, Any]) -> None:
        holder = owner_for_reader(reader)
        self._access_log.add(
            entry, holder, self._readers.count_same_kind(reader) + self._sign_in.count_same_kind(reader)
        )
        self._full.pop(reader.identity, None)

    @staticmethod
    def _entry(reader: Reader) -> dict[str, Any]:
        now = format_time(time.time_ns() // 1000)
        subject = {} if reader.subject is None else {"subject": reader.subject}
        return {"time": now, "reader": reader.name, "tenant": reader.tenant, **subject}

    def add_routes(self, app: FastAPI) -> None:
        """Adds `GET /v1/exchanges`, `/v1/exchanges/{id}`, `/v1/exchanges/{id}/receipt`, `/v1/overview`,
        `/v1/names`, `/v1/export`, `/v1/tenants`, `/v1/budgets`, `/v1/analysis` and `/v1/reader`."""

        # These routes read and sync files, so they run in a thread of the pool.
        @app.get("/v1/exchanges")
        def exchanges(
            request: Request, limit: _Limit = 50, newest: _Flag = False, watch: _Flag = False
        ) -> JSONResponse:
            reader = self._authenticate(request)
            asked_for = dict(request.query_params)
            return self._respond(reader, asked_for, lambda: self._page(reader, request, limit, newest), watch)

        @app.get("/v1/exchanges/{request_id}")
        def exchange(request: Request, request_id: str) -> JSONResponse:
            reader = self._authenticate(request)
            return self._respond(reader, {"id": request_id}, lambda: self._find_exchange(reader, request_id))

        @app.get("/v1/exchanges/{request_id}/receipt")
        def receipt_of(request: Request, request_id: str) -> JSONResponse:
            reader = self._authenticate(request)
            asked_for = {"id": request_id, "of": "receipt"}
            return self._respond(reader, asked_for, lambda: self._receipt(reader, request_id))

        @app.get("/v1/overview")
        def all_in_time(request: Request) -> JSONResponse:
            reader = self._authenticate(request)
            asked_for = {**request.query_params, "of": "overview"}
            return self._respond(reader, asked_for, lambda: self._overview(reader, request))

        @app.get("/v1/names")
        def names(request: Request) -> JSONResponse:
            reader = self._authenticate(request)
            asked_for = {**request.query_params, "of": "names"}
            return self._respond(reader, asked_for, lambda: self._names(reader, request))

        @app.get("/v1/export")
        def export(request: Request, format: str = "") -> StreamingResponse:  # noqa: A002 - its name in the query
            reader = self._authenticate(request)
            return self._export(reader, request, format)

        @app.get("/v1/tenants")
        def all_tenants(request: Request) -> JSONResponse:
            reader = self._authenticate(request)
            asked_for = {**request.query_params, "of": "tenants"}
            return self._respond(reader, asked_for, lambda: self._tenants(reader, request))

        @app.get("/v1/budgets")
        def all_budgets(request: Request) -> JSONResponse:
            reader = self._authenticate(request)
            asked_for = {**request.query_params, "of": "budgets"}
            return self._respond(reader, asked_for, lambda: self._budgets(reader, request))

        @app.get("/v1/analysis")
        def analysis(request: Request) -> JSONResponse:
            reader = self._authenticate(request)
            asked_for = {**request.query_params, "of": "analysis"}
            return self._respond(reader, asked_for, lambda: self._analysis(reader, request))

        self._sign_in.add_routes(app)

        # The response has no data of the ledger, so it is not recorded. The holder of a key may know its
        # reader's name.
        @app.get("/v1/reader")
        def who(request: Request) -> JSONResponse:
            reader = self._authenticate(request)
            return JSONResponse({"name": reader.name, "tenant": reader.tenant}, headers=NO_STORE_HEADERS)

    def _authenticate(self, request: Request) -> Reader:
        reader = self._sign_in.reader(request)
        if len(request.url.path) + len(request.url.query) > _MAX_QUERY_LENGTH:
            message = f"a query must have at most {_MAX_QUERY_LENGTH} characters"
            raise uncached_error(HTTPStatus.REQUEST_URI_TOO_LONG, "question_too_large", message)
        return reader

    def _parse_query(self, reader: Reader, request: Request, names: Collection[str], newest: bool) -> Filter:
        """Parses the filter of a query, restricted to what this reader may see."""
        asked = dict(request.query_params)
        repeated = len(request.query_params.multi_items()) != len(asked)
        if asked.keys() - {*names} or repeated:
            raise IndexUnusableError("a parameter is repeated or not known", "bad_filter")
        wanted = Filter.parse({name: asked.get(name) for name in FILTER_NAMES}, newest=newest)
        if reader.tenant is None:
            return wanted
        if wanted.tenant not in (None, reader.tenant):
            raise uncached_error(
                HTTPStatus.FORBIDDEN, "other_tenant", "this reader may see only exchanges of its own tenant"
            )
        return replace(wanted, tenant=reader.tenant)

    def _page(self, reader: Reader, request: Request, limit: int, newest: bool) -> dict[str, Any]:
        wanted = self._parse_query(
            reader, request, (*FILTER_NAMES, "limit", "newest", "after", "watch"), newest
        )
        with IndexSnapshot(self._index, QUERY_TIMEOUT_SECONDS) as questions:
            page = questions.page(wanted, limit, request.query_params.get("after"))
        found = [row.facts for row in page.rows]
        return {"exchanges": found, "next": page.next_cursor, "index": self._index_state()}

    def _overview(self, reader: Reader, request: Request) -> dict[str, Any]:
        wanted = self._parse_query(reader, request, ("tenant", "since", "until", "by"), newest=False)
        by = request.query_params.get("by", "tenant")
        with IndexSnapshot(self._index, QUERY_TIMEOUT_SECONDS) as questions:
            return {**overview(questions, wanted, by), "index": self._index_state()}

    def _names(self, reader: Reader, request: Request) -> dict[str, Any]:
        wanted = self._parse_query(reader, request, ("tenant",), newest=False)
        with IndexSnapshot(self._index, QUERY_TIMEOUT_SECONDS) as questions:
            return {**known_names(questions, wanted.tenant), "index": self._index_state()}

    def _tenants(self, reader: Reader, request: Request) -> dict[str, Any]:
        wanted = self._parse_query(reader, request, ("tenant", "since", "until"), newest=False)
        with IndexSnapshot(self._index, QUERY_TIMEOUT_SECONDS) as questions:
            return {"tenants": tenants(questions, wanted), "index": self._index_state()}

    def _budgets(self, reader: Reader, request: Request) -> dict[str, Any]:
        wanted = self._parse_query(reader, request, ("tenant",), newest=False)
        with IndexSnapshot(self._index, QUERY_TIMEOUT_SECONDS) as questions:
            return {**budgets(questions, self._ledger, wanted.tenant), "index": self._index_state()}

    def _analysis(self, reader: Reader, request: Request) -> dict[str, Any]:
        wanted = self._parse_query(reader, request, ("tenant", "model", "since", "until"), newest=False)
        with IndexSnapshot(self._index, QUERY_TIMEOUT_SECONDS) as questions:
            return {**read_analysis(questions, wanted), "index": self._index_state()}

    def _export(self, reader: Reader, request: Request, form: str) -> StreamingResponse:
        """Returns an export file after the reader and the number of exchanges are recorded."""
        made: list[ExportFile] = []

        def make() -> dict[str, Any]:
            wanted = self._parse_query(reader, request, (*FILTER_NAMES, "format"), newest=False)
            made.append(self._exports.make(wanted, form, reader))
            return {"exported": range(made[0].exchanges)}

        try:
            self._run_recorded(reader, {**request.query_params, "of": "export"}, make)
        except BaseException:
            for one in made:
                one.close()
            raise
        [file] = made
        return _FileResponse(file)

    def _index_state(self) -> dict[str, Any]:
        """What may be missing from a response: the number of waiting records, and the problem that stops the
        index."""
        standing = self._standing()
        return {"behind": standing.records_behind, "code": standing.code}

    def _find_exchange(self, reader: Reader, request_id: str) -> dict[str, Any]:
        with IndexSnapshot(self._index, QUERY_TIMEOUT_SECONDS) as questions:
            return {"exchanges": [self._find(questions, reader, request_id).facts]}

    def _receipt(self, reader: Reader, request_id: str) -> dict[str, Any]:
        with IndexSnapshot(self._index, QUERY_TIMEOUT_SECONDS) as questions:
            row = self._find(questions, reader, request_id)
            return receipt(questions, self._ledger, row)

    def _find(self, questions: IndexSnapshot, reader: Reader, request_id: str) -> ExchangeRow:
        wanted = Filter.parse({"id": request_id, "tenant": reader.tenant})
        row = questions.find(str(wanted.id), wanted.tenant)
        if row is None:
            # An exchange of another tenant gets the same response as an unknown one.
            raise uncached_error(
                HTTPStatus.NOT_FOUND, "no_such_exchange", "the index has no such exchange for this reader"
            )
        return row

    def _respond(
        self, reader: Reader, asked: dict[str, str], ask: Callable[[], dict[str, Any]], watch: bool = False
    ) -> JSONResponse:
        return JSONResponse(self._run_recorded(reader, asked, ask, watch), headers=NO_STORE_HEADERS)

    def _run_recorded(
        self, reader: Reader, asked: dict[str, str], ask: Callable[[], dict[str, Any]], watch: bool = False
    ) -> dict[str, Any]:
        """Runs a query, records it with its result, and returns the result. For a watched query, one line
        covers a minute."""
        refused: ApiError | None = None
        answer: dict[str, Any] = {}
        try:
            with self._places.slot(reader):
                answer = ask()
        except IndexUnusableError as error:
            status = _STATUS_BY_CODE.get(error.code, HTTPStatus.SERVICE_UNAVAILABLE)
            message = str(error)
            if error.code not in _STATUS_BY_CODE:
                log.error("the index cannot be queried: %s [%s]", error, error.code)  # noqa: TRY400
                message = "the index cannot be queried now"
            refused = uncached_error(status, error.code, message)
        except _core.ProofgateError as error:
            log.error("records cannot be read: %s [%s]", error, error.code)  # noqa: TRY400
            status = _STATUS_BY_CODE.get(error.code, HTTPStatus.SERVICE_UNAVAILABLE)
            refused = uncached_error(status, error.code, "the ledger cannot provide these records now")
        except TooManyQueriesError:
            message = "too many requests are in progress: try again in a moment"
            refused = uncached_error(HTTPStatus.SERVICE_UNAVAILABLE, "busy", message)
        except ApiError as error:
            refused = error
        watched = (*reader.identity, *sorted(asked.items()))
        if refused is None and watch and self._watching.is_recorded(watched):
            return answer
        self._record(reader, asked, answer, refused, watch)
        if refused is not None:
            raise refused
        if watch:
            self._watching.mark_recorded(watched)
        return answer

    def _record(
        self,
        reader: Reader,
        asked: dict[str, str],
        answer: dict[str, Any],
        refused: ApiError | None,
        watch: bool,
    ) -> None:
        """Records a query. Raises ApiError if it cannot be recorded."""
        if refused is not None and not self._refused.should_record(reader, refused.code):
            return
        entry = {
            **self._entry(reader),
            "asked": asked if refused is None else shorten_query(asked),
            "rows": max(len(answer.get(name, ())) for name in _COUNTED_LISTS),
            "refused": None if refused is None else refused.code,
        }
        if watch and refused is None:
            entry["for_seconds"] = RECORD_INTERVAL_SECONDS
        message = "the read cannot be recorded now"
        try:
            self._add(reader, entry)
        except AccessLogFullError as error:
            self.quota_refusals += 1
            self._full.setdefault(reader.identity, (time.time_ns() // 1000, str(error.strerror)))
            message = "this reader's share of the access log is full"
        except OSError as error:
            log.error("no query is answered: the access log cannot be written: %s", error)  # noqa: TRY400
        else:
            return
        raise uncached_error(HTTPStatus.SERVICE_UNAVAILABLE, "access_log_unavailable", message)

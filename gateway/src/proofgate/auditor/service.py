"""The auditor's port: the aggregate log as tiles (c2sp.org/tlog-tiles), proofs, findings, metrics and probes.

The port is read-only and serves no secrets, so everyone who should check the ledger may have access. Only
readers with a key get data about exchanges from an index (`proofgate.index.routes`).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from http import HTTPStatus
from typing import Annotated, Any

import uvloop
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from proofgate import _core, explorer
from proofgate.auditor import metrics
from proofgate.auditor.summary import summary
from proofgate.auditor.watch import LedgerWatcher
from proofgate.auditor.witnesses import Witnesses
from proofgate.http_errors import ApiError, handle_api_error, handle_http_exception, handle_validation_error
from proofgate.http_errors import error_response as answer_error
from proofgate.http_server import Server, address_of, on_signals
from proofgate.index.index_services import IndexServices

#: Maximum age of the last poll. A poll reads a limited number of bytes, so a longer poll hangs.
MAX_POLL_AGE_SECONDS = 300.0
_OUT_OF_RANGE = "out_of_range"
_NO_CACHE = {"Cache-Control": "no-cache"}

_Number = Annotated[int, Query(ge=0, lt=1 << 63)]


def create_app(watch: LedgerWatcher, kept: IndexServices | None = None) -> FastAPI:
    """Creates the application of one auditor and of its index."""
    app = FastAPI(title="Proofgate auditor", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_exception_handler(ApiError, handle_api_error)
    app.add_exception_handler(StarletteHTTPException, handle_http_exception)
    app.add_exception_handler(RequestValidationError, handle_validation_error)
    app.add_exception_handler(_core.AuditorError, _handle_core_error)
    auditor = watch.auditor
    explorer.add_explorer_routes(app, auditor, statements=watch.statements)
    desk = kept.reader_port if kept is not None else None
    if desk is not None:
        desk.add_routes(app)
        watch.reader_port_findings = desk.findings
    else:
        # The page requests this before it shows a form.
        @app.get("/v1/sign-in")
        async def sign_in() -> dict[str, Any]:
            return {"readers": False, "oidc": False, "reader": None}

    index = kept.index if kept is not None else None

    @app.get("/healthz")
    async def healthz() -> PlainTextResponse:
        if (watch.poll_age() or 0.0) > MAX_POLL_AGE_SECONDS:
            return PlainTextResponse("the last poll was too long ago\n", HTTPStatus.SERVICE_UNAVAILABLE)
        return PlainTextResponse("ok\n")

    @app.get("/readyz")
    async def readyz() -> PlainTextResponse:
        if not watch.last_poll:
            return PlainTextResponse("the first poll has not finished\n", HTTPStatus.SERVICE_UNAVAILABLE)
        if watch.unreadable_reason is not None:
            # /healthz does not report this, because a restart would not help.
            text = f"the ledger cannot be read: {watch.unreadable_reason}\n"
            return PlainTextResponse(text, HTTPStatus.SERVICE_UNAVAILABLE)
        standing = None if index is None else index.status()
        if standing is not None and standing.code:
            # The auditor still audits, which is its purpose.
            return PlainTextResponse(f"ok, but the index lags [{standing.code}]\n")
        return PlainTextResponse("ok\n")

    # The core may be writing a witness's response, so a thread of the pool waits for it.
    @app.get("/metrics")
    def show_metrics() -> Response:
        return Response(metrics.render(watch, index, desk), media_type=metrics.CONTENT_TYPE)

    @app.get("/findings")
    async def findings() -> JSONResponse:
        return JSONResponse(watch.findings_report())

    @app.get("/heads")
    async def heads() -> JSONResponse:
        return JSONResponse({"shards": watch.heads()})

    # This may also wait for the core to write a witness's response.
    @app.get("/status")
    def status() -> JSONResponse:
        return JSONResponse(summary(watch, index))

    @app.get("/checkpoint")
    async def checkpoint() -> PlainTextResponse:
        published = auditor.checkpoint()
        if published is None:
            raise _not_cosigned()
        return PlainTextResponse(published[1], headers=_NO_CACHE)

    @app.get("/witnesses")
    def witnesses() -> JSONResponse:
        return JSONResponse({"witnesses": watch.witnesses()})

    # These routes read files, so they run in a thread of the pool.
    @app.get("/tile/{rest:path}")
    def tile(rest: str) -> Response:
        found = auditor.read(f"tile/{rest}")
        if found is None:
            raise ApiError(
                HTTPStatus.NOT_FOUND, "no_such_tile", "the newest checkpoint does not cover this tile"
            )
        # The content of such a path never changes.
        forever = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(found, media_type="application/octet-stream", headers=forever)

    @app.get("/proof")
    def proof(index: _Number) -> PlainTextResponse:
        text = auditor.tlog_proof(index)
        if text is None:
            raise _not_cosigned()
        return PlainTextResponse(text, headers=_NO_CACHE)

    @app.get("/inclusion")
    def inclusion(index: _Number, size: _Number) -> dict[str, Any]:
        return {"index": index, "size": size, "hashes": auditor.inclusion(index, size)}

    @app.get("/consistency")
    def consistency(old: _Number, new: _Number) -> dict[str, Any]:
        return {"old": old, "new": new, "hashes": auditor.consistency(old, new)}

    return app


def _not_cosigned() -> ApiError:
    message = "no checkpoint is published yet: the quorum of the witness policy has not cosigned a checkpoint"
    return ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "not_cosigned", message)


def _handle_core_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, _core.AuditorError)  # noqa: S101 - narrows the type that the handler is registered for
    status = HTTPStatus.BAD_REQUEST if error.code == _OUT_OF_RANGE else HTTPStatus.SERVICE_UNAVAILABLE
    return answer_error(status, error.code, str(error))


async def _serve(
    watch: LedgerWatcher, witnesses: Witnesses, listener: socket.socket, kept: IndexServices
) -> None:
    server = Server(create_app(watch, kept), f"proofgate auditor: http://{address_of(listener)}")

    def stop() -> None:
        server.should_exit = True

    following = asyncio.create_task(watch.follow())
    witnesses.start()
    for outlet in watch.destinations():
        outlet.start()
    with on_signals(stop):
        await server.serve(sockets=[listener])
    witnesses.stop()
    for outlet in watch.destinations():
        outlet.stop()
    following.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await following


def run(watch: LedgerWatcher, witnesses: Witnesses, listener: socket.socket, kept: IndexServices) -> None:
    """Polls the ledger and serves requests until SIGTERM or SIGINT. A poll that is running then is
    completed."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(watch, witnesses, listener, kept))

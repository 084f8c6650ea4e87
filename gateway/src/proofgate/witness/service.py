"""The witness's port: add-checkpoint (c2sp.org/tlog-witness), cosigned checkpoints, metrics and a probe.

Clients need no token, because only checkpoints that a known log has signed are cosigned.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus

import uvloop
from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from proofgate import _core, process_metrics
from proofgate.http_body import read_body
from proofgate.http_errors import ApiError, handle_api_error, handle_http_exception
from proofgate.http_server import Server, address_of, on_signals

log = logging.getLogger("proofgate.witness")

#: Maximum bytes of a request: a checkpoint with the maximum number of signatures, and the longest proof.
MAX_BODY_BYTES = 1 << 17
BODY_TIMEOUT_SECONDS = 10.0
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "proofgate_witness"
#: Codes of the core for problems of a log or of this witness, and not only of the client.
_LOG_LEVELS = {"not_consistent": logging.WARNING, "state": logging.ERROR}


def create_app(witness: _core.Witness) -> FastAPI:
    """Creates the application of one witness."""
    app = FastAPI(title="Proofgate witness", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_exception_handler(ApiError, handle_api_error)
    app.add_exception_handler(StarletteHTTPException, handle_http_exception)
    results: Counter[str] = Counter()

    @app.get("/healthz")
    async def healthz() -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    # The core may hold a lock during a write, so a thread of the pool waits for it.
    @app.get("/metrics")
    def metrics() -> Response:
        text = "".join(f"{line}\n" for line in _metrics(witness, results))
        text += process_metrics.render("witness")
        return Response(text, media_type=METRICS_TYPE)

    @app.post("/add-checkpoint")
    async def add_checkpoint(request: Request) -> Response:
        body = await read_body(request, MAX_BODY_BYTES, BODY_TIMEOUT_SECONDS)
        status, code, text = await run_in_threadpool(witness.add_checkpoint, body, int(time.time()))
        results[code] += 1
        if code in _LOG_LEVELS:
            log.log(_LOG_LEVELS[code], "a checkpoint was not cosigned: %s [%s]", text, code)
        if status == HTTPStatus.OK:
            return PlainTextResponse(text)
        if status == HTTPStatus.CONFLICT:
            # Starlette would add a charset to a text media type.
            return Response(f"{text}\n", status, {"Content-Type": "text/x.tlog.size"})
        return PlainTextResponse(f"{text}\n", status)

    @app.get("/{origin_digest}/checkpoint")
    def checkpoint(origin_digest: str) -> PlainTextResponse:
        note = witness.checkpoint(origin_digest)
        if note is None:
            raise ApiError(HTTPStatus.NOT_FOUND, "no_checkpoint", "no checkpoint of this log was cosigned")
        return PlainTextResponse(note, headers={"Cache-Control": "no-cache"})

    return app


def _metrics(witness: _core.Witness, results: Counter[str]) -> Iterator[str]:
    yield f"# HELP {_PREFIX}_requests_total Requests to cosign, by result."
    yield f"# TYPE {_PREFIX}_requests_total counter"
    for result, count in sorted(results.items()):
        yield f'{_PREFIX}_requests_total{{result="{result}"}} {count}'
    yield f"# HELP {_PREFIX}_cosigned_entries Entries of the newest checkpoint that was cosigned."
    yield f"# TYPE {_PREFIX}_cosigned_entries gauge"
    for head in json.loads(witness.heads()):
        origin = head["origin"].replace("\\", r"\\").replace('"', r"\"")
        yield f'{_PREFIX}_cosigned_entries{{origin="{origin}"}} {head["size"]}'


async def _serve(witness: _core.Witness, listener: socket.socket) -> None:
    announcement = f"proofgate witness: http://{address_of(listener)} verifying-key={witness.verifying_key}"
    server = Server(create_app(witness), announcement)

    def stop() -> None:
        server.should_exit = True

    with on_signals(stop):
        await server.serve(sockets=[listener])


def run(witness: _core.Witness, listener: socket.socket) -> None:
    """Serves until SIGTERM or SIGINT. A cosigning in progress is completed."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(witness, listener))

"""The admin port: health, readiness, metrics, status, checkpoint, proofs, limits, retirement, drain and more.

It is for operators and probes, and cannot be reached through the traffic port. Responses repeat nothing that
a client sent.
"""

from __future__ import annotations

import hmac
import json
import threading
from http import HTTPStatus
from typing import Annotated, Any, Protocol

from fastapi import FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from proofgate import _core, profiling
from proofgate.http_body import read_body
from proofgate.http_errors import ApiError, handle_api_error, handle_http_exception, handle_validation_error
from proofgate.http_errors import error_response as answer_error
from proofgate.limit_metrics import LimitMetrics
from proofgate.reading.routes import LedgerReadRoutes
from proofgate.reading.token import auditor_token
from proofgate.reload import ReloadOutcome

REQUEST_ID = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
METRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_OPENMETRICS_EOF = "# EOF\n"
# Reasons for not being ready that do not require a restart. Any other reason, such as a failed fsync, lasts
# until the process is replaced, so the liveness probe fails.
TRANSIENT_REASONS = frozenset({None, "retiring", "draining"})
PROOF_WAIT_SECONDS = 5.0
MAX_PROOF_WAIT_SECONDS = 30.0
# A proof reads the volume on the worker's own CPU core and may wait. The pool's other threads remain free for
# other requests.
MAX_CONCURRENT_PROOFS = 8
DEFAULT_TENANT_COUNT = 100
MAX_TENANT_COUNT = 1000
# Maximum wait for the preceding requests for limits, which are answered one at a time.
LIMITS_WAIT_SECONDS = 5.0
#: Maximum bytes of the body of `PUT /profiling`, the only request with a body.
MAX_BODY_BYTES = 1 << 14
BODY_TIMEOUT_SECONDS = 10.0


class ProcessControls(Protocol):
    """Interface from the admin port to the process that runs the worker."""

    @property
    def token(self) -> str | None:
        """The token that requests with side effects must carry. None: these requests are always refused."""

    def set_retiring(self, retire: bool) -> bool:
        """Retires the worker or cancels the retirement. Returns whether the worker is retiring afterwards."""

    def drain(self) -> None:
        """Starts to drain and returns immediately. Called once for each accepted request."""

    async def reload(self) -> ReloadOutcome:
        """Reads the configuration again and applies it if it differs."""

    def status(self) -> dict[str, Any]:
        """Status of the process, in addition to the worker's own status. It contains no values of the
        configuration."""

    def metrics(self) -> str:
        """Metrics in addition to the worker's own, as Prometheus text; empty if there are none."""


def create_app(
    worker: _core.Worker, controls: ProcessControls, reading: LedgerReadRoutes | None = None
) -> FastAPI:
    """Creates the admin application of one worker. With `reading`, an auditor can read the worker's ledger
    folder."""
    # No documentation pages: README.md lists the endpoints, so a port scan does not find them.
    app = FastAPI(title="Proofgate worker", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_exception_handler(ApiError, handle_api_error)
    app.add_exception_handler(StarletteHTTPException, handle_http_exception)
    app.add_exception_handler(RequestValidationError, handle_validation_error)
    app.add_exception_handler(_core.ProofgateError, _handle_core_error)

    # `async def` runs on the event loop, so probes are answered even if every pool thread waits for a proof.
    @app.get("/healthz")
    async def healthz() -> PlainTextResponse:
        reason = worker.ready()
        if reason not in TRANSIENT_REASONS:
            return PlainTextResponse(f"{reason}\n", HTTPStatus.SERVICE_UNAVAILABLE)
        return PlainTextResponse("ok\n")

    @app.get("/readyz")
    async def readyz() -> PlainTextResponse:
        reason = worker.ready()
        if reason is not None:
            return PlainTextResponse(f"{reason}\n", HTTPStatus.SERVICE_UNAVAILABLE)
        return PlainTextResponse("ok\n")

    limit_metrics = LimitMetrics(worker.limit_use, MAX_TENANT_COUNT)

    @app.get("/metrics")
    async def metrics() -> Response:
        text = _metrics(worker, controls, reading, await limit_metrics.render())
        return Response(text, media_type=METRICS_TYPE)

    @app.get("/status")
    async def status() -> JSONResponse:
        return JSONResponse(
            json.loads(worker.status()) | controls.status() | {"checkpoint": _checkpoint(worker)}
        )

    @app.get("/checkpoint")
    async def checkpoint() -> PlainTextResponse:
        return PlainTextResponse(worker.checkpoint())

    proofs = threading.BoundedSemaphore(MAX_CONCURRENT_PROOFS)

    @app.get("/proof/{request_id}")
    def proof(
        request: Request,
        request_id: Annotated[str, Path(pattern=REQUEST_ID)],
        timeout: Annotated[float, Query(gt=0, le=MAX_PROOF_WAIT_SECONDS)] = PROOF_WAIT_SECONDS,
    ) -> Response:
        # A proof needs the token because it reads the volume and contains the salt that opens a commitment.
        _authorize(request, controls.token, "proof")
        if not proofs.acquire(timeout=timeout):
            message = (
                f"this worker creates at most {MAX_CONCURRENT_PROOFS} proofs at a time; try again in a moment"
            )
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "busy", message, {"Retry-After": "1"})
        try:
            return Response(worker.prove(request_id, timeout), media_type="application/json")
        except KeyError:
            message = "no log of this worker's shard has an exchange with this id"
            raise ApiError(HTTPStatus.NOT_FOUND, "unknown_request", message) from None
        finally:
            proofs.release()

    limits_asked = threading.BoundedSemaphore(1)

    @app.get("/tenants/limits")
    def limits(
        request: Request, most: Annotated[int, Query(ge=1, le=MAX_TENANT_COUNT)] = DEFAULT_TENANT_COUNT
    ) -> Response:
        # The request waits while the limits thread reads or writes its files.
        _authorize(request, controls.token, "limits")
        if not limits_asked.acquire(timeout=LIMITS_WAIT_SECONDS):
            message = "this worker is still answering another request for its ledger; try again in a moment"
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "busy", message, {"Retry-After": "1"})
        try:
            return Response(worker.limit_use(most), media_type="application/json")
        finally:
            limits_asked.release()

    @app.put("/retirement")
    async def begin_retirement(request: Request) -> dict[str, bool]:
        _authorize(request, controls.token, "retirement")
        return {"retiring": controls.set_retiring(True)}

    @app.delete("/retirement")
    async def end_retirement(request: Request) -> dict[str, bool]:
        _authorize(request, controls.token, "retirement")
        if controls.set_retiring(False):
            message = "the worker is already draining, and draining cannot be cancelled"
            raise ApiError(HTTPStatus.CONFLICT, "draining", message)
        return {"retiring": False}

    @app.post("/drain", status_code=HTTPStatus.ACCEPTED)
    async def begin_drain(request: Request) -> dict[str, bool]:
        _authorize(request, controls.token, "drain")
        controls.drain()
        return {"draining": True}

    @app.post("/reload")
    async def reload(request: Request) -> JSONResponse:
        _authorize(request, controls.token, "reload")
        outcome = await controls.reload()
        status = HTTPStatus.CONFLICT if outcome.result == "refused" else HTTPStatus.OK
        return JSONResponse(outcome.as_json(), status)

    @app.get("/profiling")
    async def show_profiling() -> dict[str, bool]:
        return {"stages": profiling.is_enabled()}

    @app.put("/profiling")
    async def switch_profiling(request: Request) -> dict[str, bool]:
        _authorize(request, controls.token, "profiling")
        profiling.set_enabled(_stages(await read_body(request, MAX_BODY_BYTES, BODY_TIMEOUT_SECONDS)))
        return {"stages": profiling.is_enabled()}

    if reading is not None:

        def authorize(request: Request) -> None:
            token = controls.token
            _authorize(request, auditor_token(token) if token else None, "reading", "the auditor token")

        reading.add_routes(app, authorize)

    return app


def _metrics(
    worker: _core.Worker, controls: ProcessControls, reading: LedgerReadRoutes | None, limits: str
) -> str:
    metrics = worker.metrics()
    more = controls.metrics() + (reading.metrics() if reading is not None else "") + limits
    return (
        metrics.removesuffix(_OPENMETRICS_EOF)
        + more
        + (_OPENMETRICS_EOF if metrics.endswith(_OPENMETRICS_EOF) else "")
    )


def _checkpoint(worker: _core.Worker) -> str | None:
    try:
        return worker.checkpoint()
    except _core.LedgerError:
        return None


def _stages(body: bytes) -> bool:
    """The value of `stages` in a body such as `{"stages": true}`."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    match document:
        case {"stages": bool() as stages, **others} if not others:
            return stages
    message = 'send {"stages": true} or {"stages": false}'
    raise ApiError(HTTPStatus.BAD_REQUEST, "invalid_request", message)


def _authorize(request: Request, token: str | None, what: str, name: str = "the admin token") -> None:
    authorization = request.headers.getlist("authorization")
    if token is None:
        message = f"{what} over HTTP is off: set admin.tokenFile"
        raise ApiError(HTTPStatus.FORBIDDEN, f"{what}_disabled", message)
    scheme, _, given = authorization[0].partition(" ") if len(authorization) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not given:
        message = f"send {name} in exactly one Authorization: Bearer header"
        challenge = {"WWW-Authenticate": "Bearer"}
        raise ApiError(HTTPStatus.UNAUTHORIZED, "missing_token", message, challenge)
    # compare_digest raises an exception for text outside ASCII, so bytes are compared.
    if not hmac.compare_digest(given.encode(), token.encode()):
        raise ApiError(HTTPStatus.FORBIDDEN, "wrong_token", f"the token in the request is not {name}")


def _handle_core_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, _core.ProofgateError)  # noqa: S101 - narrows the type that the handler is registered for
    return answer_error(HTTPStatus.SERVICE_UNAVAILABLE, error.code, str(error))

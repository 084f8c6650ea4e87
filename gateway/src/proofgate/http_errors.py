"""Error responses of this package's HTTP services: a status, a code and one sentence."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import HTTPException, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as StarletteHTTPException


class ApiError(HTTPException):
    """An error response: an HTTP status, a stable code and one sentence."""

    def __init__(
        self, status: HTTPStatus, code: str, message: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(status, headers=headers)
        self.code = code
        self.message = message


def error_response(
    status: int, code: str, message: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """Creates an error response."""
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)


def handle_api_error(_: Request, refused: Exception) -> Response:
    """Handles an ApiError."""
    assert isinstance(refused, ApiError)  # noqa: S101 - narrows the type that the handler is registered for
    return error_response(refused.status_code, refused.code, refused.message, dict(refused.headers or {}))


def handle_http_exception(_: Request, failed: Exception) -> Response:
    """Handles errors of the framework, such as an unknown path or method."""
    assert isinstance(failed, StarletteHTTPException)  # noqa: S101 - as above
    status = HTTPStatus(failed.status_code)
    return error_response(
        status, status.name.lower(), status.description or status.phrase, dict(failed.headers or {})
    )


def handle_validation_error(_: Request, __: Exception) -> Response:
    """Handles invalid parameters."""
    message = "a part of the path or of the query is not valid"
    return error_response(HTTPStatus.BAD_REQUEST, "invalid_request", message)

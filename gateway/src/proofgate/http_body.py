"""Reading of request bodies with limits on size and time, for the services of this package."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from fastapi import Request
from starlette.requests import ClientDisconnect

from proofgate.http_errors import ApiError


async def read_body(request: Request, most: int, seconds: float) -> bytes:
    """Reads the body of a request. Raises ApiError (`too_large`, `timeout`, `cut_off`)."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                body += piece
                if len(body) > most:
                    message = f"the body is larger than {most} bytes"
                    raise _closing_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", message)
    except TimeoutError:
        message = f"the body was not received within {seconds:g} s"
        raise _closing_error(HTTPStatus.REQUEST_TIMEOUT, "timeout", message) from None
    except ClientDisconnect:
        raise ApiError(HTTPStatus.BAD_REQUEST, "cut_off", "the body is incomplete") from None
    return bytes(body)


def _closing_error(status: HTTPStatus, code: str, message: str) -> ApiError:
    return ApiError(status, code, message, {"Connection": "close"})

"""A request's body, as the services of this package read one: bounded in size and time."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from fastapi import Request
from starlette.requests import ClientDisconnect

from proofgate.http_errors import Refusal


async def whole_body(request: Request, most: int, seconds: float) -> bytes:
    """The body. Raises Refusal (`too_large`, `timeout`, `cut_off`)."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                body += piece
                if len(body) > most:
                    message = f"the body is larger than {most} bytes"
                    raise _ended(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", message)
    except TimeoutError:
        message = f"the body did not come within {seconds:g} s"
        raise _ended(HTTPStatus.REQUEST_TIMEOUT, "timeout", message) from None
    except ClientDisconnect:
        raise Refusal(HTTPStatus.BAD_REQUEST, "cut_off", "the body was cut off") from None
    return bytes(body)


def _ended(status: HTTPStatus, code: str, message: str) -> Refusal:
    return Refusal(status, code, message, {"Connection": "close"})

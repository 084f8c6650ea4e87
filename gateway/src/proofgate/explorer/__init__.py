"""The auditor's page: what it found, its log as a tree, and evidence that the reader's own browser verifies.

The files in `static` are all there is: nothing is rendered here, and what the page shows it fetches from the
auditor's port. They are read once, so no path of a request ever names a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from http import HTTPStatus
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Protocol

from fastapi import FastAPI, Request, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proofgate.http_errors import ApiError

INDEX = "index.html"
#: Also the page's worker and its modules come from here, and nothing is written into the page's markup.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
}


class VerifyingKeySource(Protocol):
    """Who tells the verifying keys: the auditor of the core."""

    def verifying_keys(self) -> tuple[str, str]:
        """The aggregate log's, and the ledger's."""


class SecurityHeadersMiddleware:
    """Puts the headers of the page on every answer of the port: some hold what others wrote."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def static_files(folder: Traversable) -> dict[str, bytes]:
    """The files of the page by name. What is not of a known type is none of them."""
    files = (file for file in folder.iterdir() if file.is_file())
    return {file.name: file.read_bytes() for file in files if _suffix(file.name) in _TYPES}


def add_explorer_routes(
    app: FastAPI,
    keys: VerifyingKeySource,
    files: Mapping[str, bytes] | None = None,
    statements: Callable[[], list[str]] = list,
) -> None:
    """Serves the page at `/`, its files and the keys below `/explorer/`; sets the headers of all answers.

    `statements` tells by which the ledger's keys follow each other.
    """
    served = static_files(resources.files(__name__) / "static") if files is None else dict(files)
    app.add_middleware(SecurityHeadersMiddleware)

    @app.get("/")
    async def index(request: Request) -> Response:
        return _file(request, served, INDEX)

    # Files of the ledger are read: a thread of the pool waits for them.
    @app.get("/explorer/keys")
    def verifying_keys() -> dict[str, Any]:
        aggregate, ledger = keys.verifying_keys()
        return {"aggregate": aggregate, "ledger": ledger, "statements": statements()}

    @app.get("/explorer/{name}")
    async def file(request: Request, name: str) -> Response:
        return _file(request, served, name)


def _file(request: Request, files: Mapping[str, bytes], name: str) -> Response:
    content = files.get(name)
    if content is None:
        raise ApiError(HTTPStatus.NOT_FOUND, "no_such_file", "the page has no such file")
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    # A newer auditor may have another one under the same name.
    headers = {"Cache-Control": "no-cache", "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, media_type=_TYPES[_suffix(name)], headers=headers)


def _suffix(name: str) -> str:
    stem, dot, suffix = name.rpartition(".")
    return dot + suffix if stem else ""

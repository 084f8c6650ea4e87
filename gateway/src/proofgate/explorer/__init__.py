"""The auditor's page: its findings, its log as a tree, and evidence that the reader's own browser verifies.

The page consists of the files in `static`. It fetches its data from the auditor's port, and nothing is
rendered on the server. The files are read once at the start, so no request path is used as a file name.
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
#: The page's worker and modules come from this origin too, and the markup contains no inline code.
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
    """A source of verifying keys, such as the core's auditor."""

    def verifying_keys(self) -> tuple[str, str]:
        """Returns the verifying keys of the aggregate log and of the ledger."""


class SecurityHeadersMiddleware:
    """Adds the page's security headers to every response of the port, because some responses contain text
    from others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def static_files(folder: Traversable) -> dict[str, bytes]:
    """Reads the files of the page by name. Files of unknown types are omitted."""
    files = (file for file in folder.iterdir() if file.is_file())
    return {file.name: file.read_bytes() for file in files if _suffix(file.name) in _TYPES}


def add_explorer_routes(
    app: FastAPI,
    keys: VerifyingKeySource,
    files: Mapping[str, bytes] | None = None,
    statements: Callable[[], list[str]] = list,
) -> None:
    """Serves the page at `/`, its files and the keys below `/explorer/`; sets the headers of all answers.

    `statements` returns the statements of succession of the ledger's keys.
    """
    served = static_files(resources.files(__name__) / "static") if files is None else dict(files)
    app.add_middleware(SecurityHeadersMiddleware)

    @app.get("/")
    async def index(request: Request) -> Response:
        return _file(request, served, INDEX)

    # This route reads files of the ledger, so it runs in a thread of the pool.
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
    # A newer auditor may serve another file under the same name.
    headers = {"Cache-Control": "no-cache", "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, media_type=_TYPES[_suffix(name)], headers=headers)


def _suffix(name: str) -> str:
    stem, dot, suffix = name.rpartition(".")
    return dot + suffix if stem else ""

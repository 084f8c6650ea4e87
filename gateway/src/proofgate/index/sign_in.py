"""Authentication of an index's readers on the port: with a key, an OpenID provider, or a one-time link."""

from __future__ import annotations

import logging
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from proofgate.http_errors import ApiError
from proofgate.index.failed_sign_ins import FailedSignIns
from proofgate.index.readers import Reader, ReadersError, ReadersFile
from proofgate.index.session_cookie import SessionCookie
from proofgate.index.sign_in_links import SESSION_SECONDS, SignInLinks

if TYPE_CHECKING:
    from proofgate.index.oidc import OidcClient
    from proofgate.index.oidc_routes import OidcRoutes

log = logging.getLogger("proofgate.index")

NO_STORE_HEADERS = {"Cache-Control": "no-store"}
_BEARER = {"WWW-Authenticate": "Bearer"}


def uncached_error(
    status: HTTPStatus, code: str, message: str, headers: dict[str, str] | None = None
) -> ApiError:
    """Creates an error that caches do not store. They may store several statuses by default (RFC 9110 section
    15.1)."""
    return ApiError(status, code, message, {**NO_STORE_HEADERS, **(headers or {})})


class ReaderAuthenticator:
    """Finds the reader of a request, and signs readers in and out."""

    def __init__(
        self,
        readers: ReadersFile,
        failed: FailedSignIns,
        oidc: OidcClient | None = None,
        links: SignInLinks | None = None,
    ) -> None:
        """`failed` records failed sign-ins. Without `oidc` and `links`, readers have only keys."""
        self._readers, self._failed, self._links = readers, failed, links
        self._cookie: SessionCookie | None = None
        self._oidc: OidcRoutes | None = None
        if oidc is not None or links is not None:
            self._cookie = SessionCookie(is_secure=oidc is not None and oidc.settings.is_secure)
        if oidc is not None and self._cookie is not None:
            # The import of Authlib is slow, so it happens only if it is used.
            from proofgate.index.oidc_routes import OidcRoutes

            self._oidc = OidcRoutes(oidc, self._cookie, failed.record_failure)

    def count_same_kind(self, reader: Reader) -> int:
        """The number of readers of the same kind (of one tenant, or of all tenants) that are signed in with a
        cookie."""
        return 0 if self._cookie is None else self._cookie.sessions.count_same_kind(reader)

    def reader(self, request: Request) -> Reader:
        """Returns the reader of a request. Raises ApiError for an unknown reader."""
        by_cookie = None if "authorization" in request.headers else self._by_cookie(request)
        return by_cookie or self._by_key(request)

    def add_routes(self, app: FastAPI) -> None:
        """Adds `GET /v1/sign-in`; with links `POST /v1/sign-in/once`; with sessions `POST /v1/sign-out`; with
        an OpenID provider its paths."""

        @app.get("/v1/sign-in")
        def sign_in(request: Request) -> JSONResponse:
            reader = self._by_cookie(request)
            named = None if reader is None else _reader_json(reader)
            told = {"readers": True, "oidc": self._oidc is not None, "reader": named}
            return JSONResponse(told, headers=NO_STORE_HEADERS)

        if self._cookie is not None:
            self._cookie.add_routes(app)
        if self._oidc is not None:
            self._oidc.add_routes(app)
        if self._links is not None and self._cookie is not None:
            self._add_links(app, self._links, self._cookie)

    def _add_links(self, app: FastAPI, links: SignInLinks, cookie: SessionCookie) -> None:
        # The token is in a header field, which a page of another site cannot send and which no log contains.
        @app.post("/v1/sign-in/once")
        def once(request: Request) -> JSONResponse:
            token = _bearer(request)
            try:
                reader = links.use(token) if token else None
            except OSError as error:
                log.error("sign-in links cannot be used: %s", error.strerror)  # noqa: TRY400 - it is reported
                message = "sign-in links cannot be used now"
                raise uncached_error(HTTPStatus.SERVICE_UNAVAILABLE, "links_unusable", message) from None
            if reader is None:
                if token:
                    self._failed.record_failure(_host(request), "link_not_valid")
                raise uncached_error(
                    HTTPStatus.UNAUTHORIZED,
                    "link_not_valid",
                    "this sign-in link was used before, or has expired: ask for a new link",
                    _BEARER,
                )
            answer = JSONResponse(_reader_json(reader), headers=NO_STORE_HEADERS)
            cookie.start_session(answer, reader, SESSION_SECONDS)
            return answer

    def _by_cookie(self, request: Request) -> Reader | None:
        return None if self._cookie is None else self._cookie.reader(request)

    def _by_key(self, request: Request) -> Reader:
        key = _bearer(request)
        try:
            reader = self._readers.find_by_key(key) if key else None
        except ReadersError:
            raise uncached_error(
                HTTPStatus.SERVICE_UNAVAILABLE, ReadersError.code, "the file of readers cannot be used now"
            ) from None
        if reader is not None and reader.is_expired(time.time_ns() // 1000):
            self._failed.record_failure(_host(request), "reader_expired")
            raise uncached_error(
                HTTPStatus.UNAUTHORIZED,
                "reader_expired",
                "this key has expired: contact the administrator of the auditor for a new one",
                _BEARER,
            )
        if reader is None:
            if request.headers.get("authorization", "").partition(" ")[2]:
                self._failed.record_failure(_host(request), "not_a_reader")
            raise uncached_error(
                HTTPStatus.UNAUTHORIZED,
                "not_a_reader",
                "send the key of a reader as `Authorization: Bearer KEY`; gateway keys do not work",
                _BEARER,
            )
        return reader


def _bearer(request: Request) -> str:
    """The token in `Authorization: Bearer …`; empty without one."""
    scheme, _, presented = request.headers.get("authorization", "").partition(" ")
    return presented if scheme.lower() == "bearer" else ""


def _host(request: Request) -> str | None:
    return None if request.client is None else request.client.host


def _reader_json(reader: Reader) -> dict[str, str | None]:
    return {"name": reader.name, "tenant": reader.tenant}

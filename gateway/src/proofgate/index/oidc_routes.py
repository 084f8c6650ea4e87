"""The routes of a sign-in with an OpenID provider, and the cookie of a started sign-in."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse

from proofgate.http_errors import ApiError
from proofgate.index.oidc import SIGN_IN_TIMEOUT_SECONDS, OidcClient, SignInError
from proofgate.index.session_cookie import SessionCookie

_PRIVATE = {"Cache-Control": "no-store"}
#: Maximum number of concurrent callbacks that wait for the provider.
_MAX_CONCURRENT_CALLBACKS = 4
#: Relative path from `/oidc/callback` to the page, which also works behind a proxy with a path prefix.
_PAGE = "../"
_UNAVAILABLE = "provider_unusable"

_Result = TypeVar("_Result")


class OidcRoutes:
    """Adds sign-in to an auditor's port."""

    def __init__(
        self, oidc: OidcClient, cookie: SessionCookie, failed: Callable[[str | None, str], None]
    ) -> None:
        """`cookie` holds the sessions. `failed` records a failed sign-in with address and code."""
        self._oidc, self._cookie, self._failed = oidc, cookie, failed
        self._places = threading.BoundedSemaphore(_MAX_CONCURRENT_CALLBACKS)
        self._begun_cookie = cookie.cookie_name("sign-in")

    def add_routes(self, app: FastAPI) -> None:
        """Adds `GET /oidc/login` and `GET /oidc/callback`."""

        # These routes wait for the provider, so they run in a thread of the pool.
        @app.get("/oidc/login")
        def login(request: Request) -> Response:
            return _redirect_on_error(request, lambda: self._login(request))

        @app.get("/oidc/callback")
        def callback(request: Request) -> Response:
            return _redirect_on_error(request, lambda: self._callback(request))

    def _login(self, request: Request) -> Response:
        url, cookie = self._call_provider(request, self._oidc.start_sign_in)
        answer = RedirectResponse(url, HTTPStatus.SEE_OTHER, _PRIVATE)
        # `lax`, because the provider redirects the browser from its own site.
        self._cookie.set(answer, self._begun_cookie, cookie, SIGN_IN_TIMEOUT_SECONDS, "lax")
        return answer

    def _callback(self, request: Request) -> Response:
        asked, cookie = dict(request.query_params), request.cookies.get(self._begun_cookie, "")
        reader = self._call_provider(request, lambda: self._oidc.finish_sign_in(asked, cookie))
        answer = RedirectResponse(_PAGE, HTTPStatus.SEE_OTHER, _PRIVATE)
        self._cookie.start_session(answer, reader, self._oidc.settings.session_seconds)
        self._cookie.set(answer, self._begun_cookie, "", 0, "lax")
        return answer

    def _call_provider(self, request: Request, ask: Callable[[], _Result]) -> _Result:
        if not self._places.acquire(blocking=False):
            message = "too many sign-ins are in progress: try again in a moment"
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "busy", message, _PRIVATE)
        try:
            return ask()
        except SignInError as error:
            status = HTTPStatus.BAD_GATEWAY if error.code == _UNAVAILABLE else HTTPStatus.FORBIDDEN
            if status == HTTPStatus.FORBIDDEN:
                self._failed(None if request.client is None else request.client.host, error.code)
            raise ApiError(status, error.code, str(error), _PRIVATE) from None
        finally:
            self._places.release()


def _redirect_on_error(request: Request, answer: Callable[[], Response]) -> Response:
    """Returns the result of `answer`. A browser whose sign-in fails is redirected to the page, which shows
    the reason.

    Raises ApiError for other clients.
    """
    try:
        return answer()
    except ApiError as refusal:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return RedirectResponse(f"{_PAGE}#/not-signed-in/{refusal.code}", HTTPStatus.SEE_OTHER, _PRIVATE)

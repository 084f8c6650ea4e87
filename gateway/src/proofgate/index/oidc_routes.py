"""The paths of a sign-in with an OpenID provider, and its cookies."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Literal, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from proofgate.http_errors import Refusal
from proofgate.index.oidc import SIGN_IN_SECONDS, Oidc, SignInError
from proofgate.index.readers import Reader
from proofgate.index.sessions import Sessions

_PRIVATE = {"Cache-Control": "no-store"}
#: Answers of the provider are waited for by so many at once.
_AT_ONCE = 4
#: The page is above `/oidc/callback`, also where a proxy puts a path before it.
_PAGE = "../"
_UNAVAILABLE = "provider_unusable"

_Answer = TypeVar("_Answer")


class OidcPort:
    """Adds sign-in to an auditor's port."""

    def __init__(self, oidc: Oidc, failed: Callable[[str | None, str], None]) -> None:
        """`failed` records a sign-in that failed: address and code."""
        self._oidc, self._failed = oidc, failed
        self.sessions = Sessions()
        self._places = threading.BoundedSemaphore(_AT_ONCE)
        # A browser takes a cookie with this name over TLS alone, from this host alone.
        prefix = "__Host-" if oidc.settings.is_secure else ""
        self._session_cookie, self._begun_cookie = f"{prefix}proofgate-session", f"{prefix}proofgate-sign-in"

    def reader(self, request: Request) -> Reader | None:
        """Who is signed in by the cookie of a request."""
        token = request.cookies.get(self._session_cookie)
        return None if token is None else self.sessions.find(token)

    def add_routes(self, app: FastAPI) -> None:
        """Adds `GET /oidc/login`, `GET /oidc/callback` and `POST /oidc/logout`."""

        # These wait for the provider: in a thread of the pool.
        @app.get("/oidc/login")
        def login(request: Request) -> Response:
            return _explained(request, lambda: self._login(request))

        @app.get("/oidc/callback")
        def callback(request: Request) -> Response:
            return _explained(request, lambda: self._callback(request))

        @app.post("/oidc/logout")
        def logout(request: Request) -> Response:
            token = request.cookies.get(self._session_cookie)
            if token is not None:
                self.sessions.end(token)
            answer = JSONResponse({}, headers=_PRIVATE)
            self._set(answer, self._session_cookie, "", 0, "strict")
            return answer

    def _login(self, request: Request) -> Response:
        url, cookie = self._asked(request, self._oidc.begin)
        answer = RedirectResponse(url, HTTPStatus.SEE_OTHER, _PRIVATE)
        # The provider's answer is a navigation from its site.
        self._set(answer, self._begun_cookie, cookie, SIGN_IN_SECONDS, "lax")
        return answer

    def _callback(self, request: Request) -> Response:
        asked, cookie = dict(request.query_params), request.cookies.get(self._begun_cookie, "")
        reader = self._asked(request, lambda: self._oidc.end(asked, cookie))
        answer = RedirectResponse(_PAGE, HTTPStatus.SEE_OTHER, _PRIVATE)
        seconds = self._oidc.settings.session_seconds
        self._set(answer, self._session_cookie, self.sessions.begin(reader), seconds, "strict")
        self._set(answer, self._begun_cookie, "", 0, "lax")
        return answer

    def _asked(self, request: Request, ask: Callable[[], _Answer]) -> _Answer:
        if not self._places.acquire(blocking=False):
            message = "too many sign-ins are in progress: try again in a moment"
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "busy", message, _PRIVATE)
        try:
            return ask()
        except SignInError as error:
            status = HTTPStatus.BAD_GATEWAY if error.code == _UNAVAILABLE else HTTPStatus.FORBIDDEN
            if status == HTTPStatus.FORBIDDEN:
                self._failed(None if request.client is None else request.client.host, error.code)
            raise Refusal(status, error.code, str(error), _PRIVATE) from None
        finally:
            self._places.release()

    def _set(
        self, answer: Response, name: str, value: str, seconds: int, same_site: Literal["lax", "strict"]
    ) -> None:
        answer.set_cookie(
            name,
            value,
            max_age=seconds,
            path="/",
            secure=self._oidc.settings.is_secure,
            httponly=True,
            samesite=same_site,
        )


def _explained(request: Request, answer: Callable[[], Response]) -> Response:
    """What `answer` returns. A browser that is refused is sent to the page, which says why in a sentence.

    Raises Refusal for other clients.
    """
    try:
        return answer()
    except Refusal as refusal:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return RedirectResponse(f"{_PAGE}#/not-signed-in/{refusal.code}", HTTPStatus.SEE_OTHER, _PRIVATE)

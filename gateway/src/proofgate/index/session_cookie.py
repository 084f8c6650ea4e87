"""The cookie of a reader who is signed in: by an OpenID provider, or by a link that works once."""

from __future__ import annotations

from typing import Literal

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from proofgate.index.readers import Reader
from proofgate.index.sessions import Sessions

_PRIVATE = {"Cache-Control": "no-store"}


class SessionCookie:
    """Begins, finds and ends sessions. Safe for several threads."""

    def __init__(self, *, is_secure: bool) -> None:
        """`is_secure`: browsers reach the port by TLS."""
        self.sessions = Sessions()
        self._is_secure = is_secure
        # A browser takes a cookie with this name over TLS alone, from this host alone.
        self._prefix = "__Host-" if is_secure else ""
        self._name = self.cookie_name("session")

    def cookie_name(self, what: str) -> str:
        """The name of a cookie of this port."""
        return f"{self._prefix}proofgate-{what}"

    def reader(self, request: Request) -> Reader | None:
        """Who is signed in by the cookie of a request."""
        token = request.cookies.get(self._name)
        return None if token is None else self.sessions.find(token)

    def start_session(self, answer: Response, reader: Reader, seconds: int) -> None:
        """Signs a reader in with an answer."""
        self.set(answer, self._name, self.sessions.start(reader), seconds, "strict")

    def add_routes(self, app: FastAPI) -> None:
        """Adds `POST /v1/sign-out`."""

        @app.post("/v1/sign-out")
        def sign_out(request: Request) -> Response:
            token = request.cookies.get(self._name)
            if token is not None:
                self.sessions.end(token)
            answer = JSONResponse({}, headers=_PRIVATE)
            self.set(answer, self._name, "", 0, "strict")
            return answer

    def set(
        self, answer: Response, name: str, value: str, seconds: int, same_site: Literal["lax", "strict"]
    ) -> None:
        """Sets a cookie that no script reads."""
        answer.set_cookie(
            name,
            value,
            max_age=seconds,
            path="/",
            secure=self._is_secure,
            httponly=True,
            samesite=same_site,
        )

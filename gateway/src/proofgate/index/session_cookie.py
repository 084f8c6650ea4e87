"""The cookie of a reader who signed in with an OpenID provider or a one-time link."""

from __future__ import annotations

from typing import Literal

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from proofgate.index.readers import Reader
from proofgate.index.sessions import Sessions

_PRIVATE = {"Cache-Control": "no-store"}


class SessionCookie:
    """Starts, finds and ends sessions. Thread-safe."""

    def __init__(self, *, is_secure: bool) -> None:
        """`is_secure`: browsers reach the port over TLS."""
        self.sessions = Sessions()
        self._is_secure = is_secure
        # A browser accepts a cookie with this prefix only over TLS and only from this host.
        self._prefix = "__Host-" if is_secure else ""
        self._name = self.cookie_name("session")

    def cookie_name(self, what: str) -> str:
        """Returns the name of a cookie of this port."""
        return f"{self._prefix}proofgate-{what}"

    def reader(self, request: Request) -> Reader | None:
        """Returns the reader who is signed in with the cookie of a request; None if nobody is."""
        token = request.cookies.get(self._name)
        return None if token is None else self.sessions.find(token)

    def start_session(self, answer: Response, reader: Reader, seconds: int) -> None:
        """Starts a session of a reader, and sets its cookie in a response."""
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
        """Sets a cookie that scripts cannot read."""
        answer.set_cookie(
            name,
            value,
            max_age=seconds,
            path="/",
            secure=self._is_secure,
            httponly=True,
            samesite=same_site,
        )

"""The answers that HAProxy gives itself, in place of a worker that it cannot reach."""

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class ErrorResponse:
    """A 503 in the shape of the API's errors; `name` is that of its backend, `code` what clients test for."""

    name: str
    code: str
    message: str
    retry_seconds: int = 1

    @property
    def body(self) -> str:
        """The answer's body, JSON."""
        error = {"message": self.message, "type": "api_error", "param": None, "code": self.code}
        return json.dumps({"error": error}, separators=(",", ":"))


UNAVAILABLE = ErrorResponse(
    "unavailable", "no_worker_available", "No gateway worker can be reached. Try again later."
)
OVERLOADED = ErrorResponse(
    "overloaded", "overloaded", "The gateway worker has reached its connection limit. Try again later."
)


def error_backends(answer: ErrorResponse) -> list[tuple[str, list[str]]]:
    """Return the sections that give the answer, on a socket that has no file.

    A connection that is passed on as it is (mode tcp) gets no answer from the section that passes it on.
    """
    frontend = [
        "mode http",
        f"bind abns@{answer.name}",
        "option disable-h2-upgrade",
        "timeout http-request 5s",
        "timeout client 5s",
        f"http-request return status 503 content-type application/json string '{answer.body}'"
        f" hdr Retry-After {answer.retry_seconds} hdr Connection close",
    ]
    return [
        (f"backend {answer.name}", [f"server local abns@{answer.name}"]),
        # Since HAProxy 3.3, a frontend and a backend may not share a name.
        (f"frontend answer-{answer.name}", frontend),
    ]

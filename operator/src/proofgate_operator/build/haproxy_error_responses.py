"""Responses that HAProxy sends itself if it cannot reach a worker."""

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class ErrorResponse:
    """A 503 in the format of the API's errors. `name` is the name of its backend, `code` the error code for
    clients."""

    name: str
    code: str
    message: str
    retry_seconds: int = 1

    @property
    def body(self) -> str:
        """The JSON body of the response."""
        error = {"message": self.message, "type": "api_error", "param": None, "code": self.code}
        return json.dumps({"error": error}, separators=(",", ":"))


UNAVAILABLE = ErrorResponse(
    "unavailable", "no_worker_available", "No gateway worker can be reached. Try again later."
)
OVERLOADED = ErrorResponse(
    "overloaded", "overloaded", "The gateway worker has reached its connection limit. Try again later."
)


def error_backends(answer: ErrorResponse) -> list[tuple[str, list[str]]]:
    """Return the configuration sections that send the response, on a socket without a file.

    In `mode tcp`, a section cannot answer a connection that it forwards.
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
        # Since HAProxy 3.3, a frontend and a backend must have different names.
        (f"frontend answer-{answer.name}", frontend),
    ]

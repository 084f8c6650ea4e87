"""Errors of requests to the API server, and the parser of its responses."""

import json

from proofgate_operator.build.naming import Manifest


class ApiError(Exception):
    """A request that the API server refused. `status` is the HTTP status, `reason` the API's machine-readable
    reason.

    `retry_after` is the time in seconds after which the server asks for a retry, None if it named none.
    `subject` is the name of the object in the server's message, empty if it names none.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        retry_after: float | None = None,
        subject: str = "",
    ) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.subject = subject

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later, because the server is overloaded or fails."""
        # A field that the schema does not have is a fault of the manifest, although server-side apply answers
        # with 500.
        unknown_field = self.message.startswith("failed to create typed patch object")
        return self.status == 429 or (self.status >= 500 and not unknown_field)


class ClientFenced(Exception):
    """A request was refused because this process is no longer the active one."""


def parse_response(status: int, raw: bytes, retry_after: str | None = None) -> Manifest:
    """Return a parsed response; raises `ApiError` for any status of 400 or higher, and for a body that is not
    a JSON object."""
    try:
        answer: Manifest = json.loads(raw)
    except ValueError:
        answer = {"message": raw[:200].decode(errors="replace")}
        # The sender is not the API server.
        status = status if status >= 400 else 502
    if not isinstance(answer, dict):
        answer, status = {}, max(status, 502)
    if status >= 400:
        # RFC 9110, section 10.2.3; the API server sends seconds, never a date.
        pause = float(retry_after) if retry_after and retry_after.isdecimal() else None
        subject = (answer.get("details") or {}).get("name", "")
        raise ApiError(status, answer.get("reason", "Unknown"), answer.get("message", ""), pause, subject)
    return answer

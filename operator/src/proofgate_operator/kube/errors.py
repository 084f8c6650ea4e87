"""How a request to the API server fails, and how its answer tells."""

import json

from proofgate_operator.build.naming import Manifest


class ApiError(Exception):
    """The API server refused a request; `status` is the HTTP status, `reason` the API's own word for it.

    `retry_after` is the time in seconds after which the server wants to be asked again, if it told one;
    `subject` the name of the object that it speaks of, if it names one.
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
        """Whether the same request may succeed later: the server is overloaded or ill."""
        # A field that no schema knows is the manifest's fault, although server-side apply answers with 500.
        unknown_field = self.message.startswith("failed to create typed patch object")
        return self.status == 429 or (self.status >= 500 and not unknown_field)


class ClientFenced(Exception):
    """This process is no longer the one that acts."""


def parse_response(status: int, raw: bytes, retry_after: str | None = None) -> Manifest:
    """Return a parsed answer; raises `ApiError` for any status from 400, and for what is no object."""
    try:
        answer: Manifest = json.loads(raw)
    except ValueError:
        answer = {"message": raw[:200].decode(errors="replace")}
        # Whoever says so, it is not the API server.
        status = status if status >= 400 else 502
    if not isinstance(answer, dict):
        answer, status = {}, max(status, 502)
    if status >= 400:
        # RFC 9110, section 10.2.3; the API server tells seconds, never a date.
        pause = float(retry_after) if retry_after and retry_after.isdecimal() else None
        subject = (answer.get("details") or {}).get("name", "")
        raise ApiError(status, answer.get("reason", "Unknown"), answer.get("message", ""), pause, subject)
    return answer

"""A client's request and the result, in a form that all clients share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

#: The schema of structured answers, and the tool that requests may have.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
LOOK: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Where to look."}},
    "required": ["city"],
}


@dataclass(frozen=True)
class Ask:
    """One request. All clients send the same content, each in its API's format."""

    model: str
    prompt: str = "hello there"
    stream: bool = False
    #: Whether the request has the tool `look`.
    tools: bool = False
    #: Whether the request contains the results of two earlier calls of the tool.
    results: bool = False
    #: Whether the answer must match the schema.
    schema: bool = False
    #: A PNG in base64.
    picture: str | None = None
    #: Whether the client closes the stream after its first event.
    leave: bool = False
    #: The API key, if it is not the tenant's.
    key: str | None = None


@dataclass(frozen=True)
class Told:
    """The answer as the client returned it."""

    text: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    #: The reason for the end of the answer, by the name in the client's API.
    finish: str | None = None
    #: The token counts of prompt and answer.
    usage: tuple[int, int] | None = None


@dataclass(frozen=True)
class Failed:
    """The exception that the client raised."""

    #: The class of the exception.
    kind: str
    status: int | None
    #: The stable error code or type in the answer.
    code: str | None
    #: The waiting time in the answer.
    retry: str | None
    message: str


class Client(Protocol):
    """An official, unmodified client without automatic retries."""

    def ask(self, ask: Ask) -> Told | Failed:
        """Sends a request, and reads its answer to the end unless `leave` is set."""

"""What a client is asked to do, and what came of it, in words that all clients share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

#: The tool that requests have, and the shape of an answer that has to have one.
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
    """One request. All clients say the same with it, each in the words of its API."""

    model: str
    prompt: str = "hello there"
    stream: bool = False
    #: Whether the request has the tool `look`.
    tools: bool = False
    #: Whether it says what two calls of the tool gave, which came before.
    results: bool = False
    #: Whether the answer has to have the schema.
    schema: bool = False
    #: A PNG in base64.
    picture: str | None = None
    #: Whether the client leaves the stream after its first event.
    leave: bool = False
    #: The key, in place of the tenant's.
    key: str | None = None


@dataclass(frozen=True)
class Told:
    """What the client made of the answer."""

    text: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    #: Why the answer ended, in the words of the client's API.
    finish: str | None = None
    #: Tokens of prompt and answer.
    usage: tuple[int, int] | None = None


@dataclass(frozen=True)
class Failed:
    """What the client raised."""

    #: The class of the exception.
    kind: str
    status: int | None
    #: The stable code or type that the client found in the answer.
    code: str | None
    #: How long to wait, as the answer says it.
    retry: str | None
    message: str


class Client(Protocol):
    """An official client, unmodified and without retries of its own."""

    def ask(self, ask: Ask) -> Told | Failed:
        """Sends a request, and reads its answer to the end unless it is told to leave."""

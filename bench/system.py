"""The compared systems: their preparation, start and requests."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from bench.processes import Pinned
from bench.request import MODEL

PATH = "/v1/chat/completions"


class UnavailableError(Exception):
    """A system is not available on this machine. The text gives the reason in one line."""


@dataclass(frozen=True)
class System:
    """One running system and the form of requests to it."""

    address: str
    process: Pinned
    path: str = PATH
    headers: dict[str, str] = field(default_factory=dict)
    model: str = MODEL
    #: Maximum tokens in each request, if the provider's API requires a maximum.
    max_tokens: int | None = None

    @property
    def url(self) -> str:
        """The URL of completions."""
        return f"http://{self.address}{self.path}"

    def with_key(self, key: str) -> dict[str, str]:
        """The headers with another API key."""
        return {**self.headers, "Authorization": f"Bearer {key}"}


@dataclass(frozen=True)
class Candidate:
    """A system that can be started.

    `prepare` installs it when needed and returns its version; raises UnavailableError.
    `start` takes a scratch folder and the address of the upstream, and runs it on the gateway's core.
    """

    name: str
    description: str
    prepare: Callable[[], str]
    start: Callable[[Path, str], AbstractContextManager[System]]
    # Whether it serves less than 1,000 requests per second; it then gets fewer scenarios, to keep the run short.
    slow: bool = False
    # The attacks that it is configured to refuse, by name.
    refuses: frozenset[str] = frozenset({"malformed"})

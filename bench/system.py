"""What is compared: how a system is made ready, started, and asked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from bench.processes import Pinned
from bench.request import MODEL

PATH = "/v1/chat/completions"


class UnavailableError(Exception):
    """A system cannot be had on this machine. Its text says why, in one line."""


@dataclass(frozen=True)
class System:
    """One running system and how a client asks it."""

    address: str
    process: Pinned
    path: str = PATH
    headers: dict[str, str] = field(default_factory=dict)
    model: str = MODEL
    #: Tokens that each request asks for at most, where the way to the provider wants to be told.
    max_tokens: int | None = None

    @property
    def url(self) -> str:
        """Where the completions are."""
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
    # Less than 1,000 requests per second: asked fewer things, so that a run ends in reasonable time.
    slow: bool = False
    # What it is set up to refuse, by the names of attacks.
    refuses: frozenset[str] = frozenset({"malformed"})

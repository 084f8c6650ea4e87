"""The behavior of the scripted model, independent of the API."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

#: Client tools that read a file; each takes the path, or a command that prints the file.
READERS = ("Read", "read_file", "read", "exec_command", "shell_command", "shell")
#: The tool with which the model requests more of the client's tools.
SEARCH = "tool_search"

_NUMBERS = itertools.count(1)


def pieces(text: str) -> list[str]:
    """A text in the pieces in which a model streams it: a few words each."""
    return [text[start : start + 40] for start in range(0, len(text), 40)]


def new_id(prefix: str) -> str:
    """An id that is unique in this run."""
    return f"{prefix}_{next(_NUMBERS)}"


class Refusal(Exception):
    """An answer with a status of 400 or above: the provider's error message, and the provider's name for the error."""

    def __init__(self, message: str, status: int = 400, kind: str | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.kind = message, status, kind


@dataclass(frozen=True)
class Call:
    """A tool call of the model."""

    name: str
    arguments: Json
    #: The client's namespace of the function, in APIs that have namespaces.
    namespace: str | None = None


@dataclass(frozen=True)
class Move:
    """The model's answer: a text or calls, with or without a preceding thought."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thought: str = ""
    #: Whether the stream stops in the middle until the client disconnects.
    holds: bool = False


@dataclass
class Asked:
    """A request in the form that all APIs share."""

    model: str
    stream: bool
    #: The schema of each function that the client offers, by its name.
    tools: dict[str, Json] = field(default_factory=dict)
    #: The namespace of each function that has one.
    namespaces: dict[str, str] = field(default_factory=dict)
    #: The results of tools since the user's last message.
    results: list[str] = field(default_factory=list)
    #: MIME types of pictures and documents in the conversation.
    media: list[str] = field(default_factory=list)
    #: Whether the answer may have thoughts.
    thinks: bool = False

    @property
    def reader(self) -> str | None:
        """The client's tool that reads a file; None for other requests, such as for a title."""
        return next((name for name in READERS if name in self.tools), None)

    def named(self, tool: str) -> str | None:
        """The client's name for an MCP server's tool, which ends with the tool's own name."""
        return next((name for name in self.tools if name.endswith(tool)), None)

    def read(self, path: str) -> Call:
        """The call that reads a file, with the argument that the tool's schema requires."""
        assert self.reader is not None
        if path.endswith(".png") and "view_image" in self.tools:
            return Call("view_image", {"path": path})
        schema = self.tools[self.reader]
        properties = schema.get("properties", {})
        wanted = next(iter(schema.get("required") or properties))
        value: Any = path
        if wanted in ("cmd", "command"):
            value = ["cat", path] if properties[wanted].get("type") == "array" else f"cat {path}"
        return Call(self.reader, {wanted: value})


Script = Callable[[Asked], Move]


def say(text: str, holds: bool = False) -> Script:
    """Answers with a text, without calls."""
    return lambda asked: Move(text, holds=holds)


def read_at_once(paths: list[str]) -> Script:
    """Reads all files in one turn, and repeats their texts and the types of their media."""

    def script(asked: Asked) -> Move:
        if asked.reader is None:
            return Move("A title")
        thought = "They want files." if asked.thinks else ""
        if not asked.results:
            return Move(calls=tuple(asked.read(path) for path in paths), thought=thought)
        return Move(f"They say: {' | '.join(asked.results)}. They show: {', '.join(sorted(asked.media))}")

    return script


def read_one_by_one(paths: list[str]) -> Script:
    """Reads one file in each turn, after a thought if thoughts are requested."""

    def script(asked: Asked) -> Move:
        if asked.reader is None:
            return Move("A title")
        turn = len(asked.results)
        thought = f"Turn {turn + 1}." if asked.thinks else ""
        if turn < len(paths):
            return Move(calls=(asked.read(paths[turn]),), thought=thought)
        return Move(f"Read {turn} files, the last: {asked.results[-1][:200]}", thought=thought)

    return script


def ask_a_server(tool: str, arguments: Json) -> Script:
    """Calls an MCP server's tool by the client's name for it, and repeats the result."""

    def script(asked: Asked) -> Move:
        offered = asked.named(tool)
        if asked.reader is None and offered is None:
            return Move("A title")
        thought = "They want a server's tool." if asked.thinks else ""
        if asked.results:
            return Move(f"The server says: {' | '.join(asked.results)}", thought=thought)
        if offered is not None:
            return Move(calls=(Call(offered, arguments, asked.namespaces.get(offered)),), thought=thought)
        if SEARCH in asked.tools:
            return Move(calls=(Call(SEARCH, {"query": tool}),), thought=thought)
        return Move(f"No {tool} is among {', '.join(asked.tools)}.")

    return script

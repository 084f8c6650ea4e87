"""What the scripted model does, whatever API it is asked by."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

#: Tools by which the clients read a file; each takes the path, or a command that prints the file.
READERS = ("Read", "read_file", "read", "exec_command", "shell_command", "shell")
#: By which the model asks for more of the client's tools.
SEARCH = "tool_search"

_NUMBERS = itertools.count(1)


def pieces(text: str) -> list[str]:
    """A text as a model says it: a few words at a time."""
    return [text[start : start + 40] for start in range(0, len(text), 40)]


def new_id(prefix: str) -> str:
    """An id that no other thing of this run has."""
    return f"{prefix}_{next(_NUMBERS)}"


class Refusal(Exception):
    """The provider answers with a status of 400 and above: its words, and the kind of error in its own names."""

    def __init__(self, message: str, status: int = 400, kind: str | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.kind = message, status, kind


@dataclass(frozen=True)
class Call:
    """A tool that the model calls."""

    name: str
    arguments: Json
    #: The group of functions that the client has it in, where the API knows these.
    namespace: str | None = None


@dataclass(frozen=True)
class Move:
    """What the model answers: a text or calls, with or without a thought in front."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thought: str = ""
    #: The stream stops in its middle until the client has gone away.
    holds: bool = False


@dataclass
class Asked:
    """A request in words that all APIs share."""

    model: str
    stream: bool
    #: The schema of each function that the client offers, by its name.
    tools: dict[str, Json] = field(default_factory=dict)
    #: The groups of those that are in one.
    namespaces: dict[str, str] = field(default_factory=dict)
    #: What tools returned since the user's last word.
    results: list[str] = field(default_factory=list)
    #: MIME types of pictures and documents in the conversation.
    media: list[str] = field(default_factory=list)
    #: Whether the answer may have thoughts.
    thinks: bool = False

    @property
    def reader(self) -> str | None:
        """The client's tool that reads a file; None of a request for a title and the like."""
        return next((name for name in READERS if name in self.tools), None)

    def named(self, tool: str) -> str | None:
        """The client's name of a server's tool, which ends with the tool's own."""
        return next((name for name in self.tools if name.endswith(tool)), None)

    def read(self, path: str) -> Call:
        """The call that reads a file, with the argument that the tool's schema wants."""
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
    """Says a text at once."""
    return lambda asked: Move(text, holds=holds)


def read_at_once(paths: list[str]) -> Script:
    """Reads all files in one turn, and repeats what they say and what they show."""

    def script(asked: Asked) -> Move:
        if asked.reader is None:
            return Move("A title")
        thought = "They want files." if asked.thinks else ""
        if not asked.results:
            return Move(calls=tuple(asked.read(path) for path in paths), thought=thought)
        return Move(f"They say: {' | '.join(asked.results)}. They show: {', '.join(sorted(asked.media))}")

    return script


def read_one_by_one(paths: list[str]) -> Script:
    """Reads a file in each turn, with a thought in front of each where thoughts are asked for."""

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
    """Calls the tool of an MCP server, under whatever name the client offers it, and repeats what it returned."""

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

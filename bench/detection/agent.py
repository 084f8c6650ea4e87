"""The requests of an agent (instructions, tools and, turn by turn, their results), and the texts that arrive."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.agents import tools
from bench.request import CLAUDE, MODEL

TOOLS = 12
_SYSTEM = "You are a coding agent. Work in small steps, and look at a file before you change it."
_TASK = "Please find out why the build is slow, and mend it."


@dataclass(frozen=True)
class Result:
    """The call of a tool, and its text."""

    path: str
    text: str


@dataclass(frozen=True)
class Dialect:
    """The format of a request: the part before its messages, the messages of a turn, and a text in each role."""

    name: str
    path: str
    begin: dict[str, Any]
    first: list[dict[str, Any]]
    turn: Callable[[int, Sequence[Result]], list[dict[str, Any]]]
    results: Callable[[Any], Iterator[str]]
    """The texts of the tools' results in a request."""

    def body(self, messages: Sequence[str]) -> bytes:
        """A request with already formatted messages."""
        begin = json.dumps(self.begin, ensure_ascii=False)
        return f'{begin[:-1]}, "messages": [{", ".join(messages)}]}}'.encode()

    def session(self, turns: Sequence[Sequence[Result]]) -> Iterator[bytes]:
        """The requests of a session, each with its whole history."""
        messages = [_written(message) for message in self.first]
        for number, results in enumerate(turns):
            messages += [_written(message) for message in self.turn(number, results)]
            yield self.body(messages)


def _written(message: dict[str, Any]) -> str:
    return json.dumps(message, ensure_ascii=False)


def in_turns(results: Sequence[Result], turns: int) -> list[Sequence[Result]]:
    """The results in about `turns` turns, at least one in each, because agents read several files in one turn."""
    each = max(1, len(results) // turns)
    return [results[start : start + each] for start in range(0, len(results), each)]


def _chat(number: int, results: Sequence[Result]) -> list[dict[str, Any]]:
    ids = [f"call_{number}_{place}" for place in range(len(results))]
    calls = [
        {
            "id": id,
            "type": "function",
            "function": {"name": "read_file", "arguments": json.dumps({"path": result.path})},
        }
        for id, result in zip(ids, results, strict=True)
    ]
    said = {"role": "assistant", "content": f"I look at {len(results)} files next.", "tool_calls": calls}
    read = [
        {"role": "tool", "tool_call_id": id, "content": result.text} for id, result in zip(ids, results, strict=True)
    ]
    return [said, *read]


def _chat_results(request: Any) -> Iterator[str]:
    for message in request["messages"]:
        if message["role"] == "tool":
            yield message["content"]


def _messages(number: int, results: Sequence[Result]) -> list[dict[str, Any]]:
    ids = [f"toolu_{number}_{place}" for place in range(len(results))]
    calls = [
        {"type": "tool_use", "id": id, "name": "read_file", "input": {"path": result.path}}
        for id, result in zip(ids, results, strict=True)
    ]
    said: list[dict[str, Any]] = [{"type": "text", "text": f"I look at {len(results)} files next."}]
    read = [
        {"type": "tool_result", "tool_use_id": id, "content": result.text}
        for id, result in zip(ids, results, strict=True)
    ]
    return [{"role": "assistant", "content": said + calls}, {"role": "user", "content": read}]


def _messages_results(request: Any) -> Iterator[str]:
    for message in request["messages"]:
        for block in message["content"]:
            if block["type"] == "tool_result":
                yield block["content"]


CHAT = Dialect(
    "Chat Completions",
    "/v1/chat/completions",
    {"model": MODEL, "tools": tools.openai(TOOLS)},
    [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": _TASK}],
    _chat,
    _chat_results,
)
MESSAGES = Dialect(
    "Messages",
    "/v1/messages",
    {"model": CLAUDE, "max_tokens": 4_096, "system": _SYSTEM, "tools": tools.anthropic(TOOLS)},
    [{"role": "user", "content": [{"type": "text", "text": _TASK}]}],
    _messages,
    _messages_results,
)
DIALECTS = (CHAT, MESSAGES)

ROLES: dict[str, Callable[[str], list[dict[str, Any]]]] = {
    "system": lambda text: [{"role": "system", "content": text}, {"role": "user", "content": "Begin."}],
    "user": lambda text: [{"role": "user", "content": text}],
    "assistant": lambda text: [
        {"role": "user", "content": "Begin."},
        {"role": "assistant", "content": text},
        {"role": "user", "content": "Go on."},
    ],
    "tool": lambda text: [*CHAT.first, *_chat(0, [Result("prompt.md", text)])],
}
"""Messages of Chat Completions that contain a text in a role."""

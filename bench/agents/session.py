"""A session of a coding agent: the requests that it sends turn by turn, each with the whole history."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from bench import request
from bench.agents import results, tools

#: The generator replaces this text by the number of the session or turn, so that no system has seen the result before.
MARK = "tick-aaaaaaaaaa"
_END = "]}"

_GUIDANCE = (
    "Work in small steps, and look at a file before you change it.",
    "Keep to the style of the code around: names, comments, order of imports, length of lines.",
    "Prefer a change in place to a new file, and a standard library to a new dependency.",
    "Run the tests of what you have changed, and say which ones you have not run.",
    "When a test fails, find out why before you change anything else.",
    "Explain what you do in one or two sentences; the user reads the changes themselves.",
    "Do not commit unless the user asks for it, and never change the history of a branch that others use.",
    "Paths are given from the root of the workspace, with forward slashes.",
    "A tool's result may be cut; ask for the rest by its lines when you need them.",
    "If two ways are equally good, take the simpler one and mention the other.",
)


@dataclass(frozen=True)
class Dialect:
    """The format of a session."""

    name: str
    path: str
    model: str


CHAT = Dialect("chat", "/v1/chat/completions", request.MODEL)
MESSAGES = Dialect("messages", "/v1/messages", request.CLAUDE)


@dataclass(frozen=True)
class Session:
    """A session in parts: the start of each request, and the messages that each turn adds."""

    begin: str
    turns: list[str]

    def body(self, turn: int) -> str:
        """The request of a turn, counted from 1."""
        return self.begin + ",".join(self.turns[:turn]) + _END

    def file(self) -> str:
        """The session in the format of the load generator."""
        return "\n".join([self.begin, *self.turns]) + "\n"


def make(dialect: Dialect, size: int, turns: int) -> Session:
    """A session whose request has `size` bytes in its last turn, of which that turn adds a twentieth.

    Raises ValueError if `size` is too small for the turns.
    """
    count = min(tools.MOST, 15 + size // 12_000)
    begin = _begin(dialect, count, system_bytes=min(8_000, size // 8))
    first = _dumps([{"role": "user", "content": f"[{MARK}] Please find out why the build is slow, and mend it."}])
    last = size // 20
    rest = size - _bytes(begin) - _bytes(first) - last - len(_END)
    share, odd = divmod(rest, turns - 2)
    sizes = [share + (number < odd) for number in range(turns - 2)] + [last]
    found = results.texts()
    # Each message except the first has a comma before it.
    made = [_turn(dialect, number, *next(found), size=size - 1) for number, size in enumerate(sizes)]
    return Session(begin, [first, *made])


def _begin(dialect: Dialect, count: int, system_bytes: int) -> str:
    lines = (f"{number}. {_GUIDANCE[number % len(_GUIDANCE)]}\n" for number in range(system_bytes // 40))
    system = f"You are a coding agent in the workspace {MARK}.\n\n# Rules\n" + "".join(lines)
    said: dict[str, Any] = {"model": dialect.model, "max_tokens": 4_096}
    if dialect is CHAT:
        said["tools"] = tools.openai(count)
        begin = [{"role": "system", "content": system[:system_bytes]}]
        messages = '"messages":[' + _dumps(begin) + ","
    else:
        said |= {"thinking": {"type": "enabled", "budget_tokens": 2_048}, "tools": tools.anthropic(count)}
        block = {"type": "text", "text": system[:system_bytes], "cache_control": {"type": "ephemeral"}}
        said["system"] = [block]
        messages = '"messages":['
    return f"{_dumps([said])[:-1]},{messages}"


def _turn(dialect: Dialect, number: int, path: str, text: str, size: int) -> str:
    """The call of a tool and its result, in exactly `size` bytes of JSON."""
    write = _chat if dialect is CHAT else _messages
    # The text is shortened until it fits, because the length of escapes is known only after writing.
    text = text * (size // len(text) + 1)
    least, most = 0, len(text)
    while least < most:
        middle = (least + most + 1) // 2
        if _bytes(write(number, path, text[:middle])) <= size:
            least = middle
        else:
            most = middle - 1
    room = size - _bytes(write(number, path, text[:least]))
    if room < 0:
        raise ValueError(f"a turn of {size} bytes has no room for a tool's call")
    return write(number, path, text[:least] + "." * room)


def _chat(number: int, path: str, text: str) -> str:
    arguments = json.dumps({"path": path, "offset": 0, "limit": 400})
    call = {"id": _id("call_", number), "type": "function", "function": {"name": "read_file", "arguments": arguments}}
    said = f"[{MARK}] I look at `{path}` next."
    return _dumps(
        [
            {"role": "assistant", "content": said, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": f"[{MARK}]\n{text}"},
        ]
    )


def _messages(number: int, path: str, text: str) -> str:
    thought = f'[{MARK}] The log names "{path}". If its loop copies each part, that is where the time goes; I read it.'
    signature = b"".join(hashlib.sha256(f"{number}/{part}".encode()).digest() for part in range(6))
    call = _id("toolu_", number)
    content = [
        {"type": "thinking", "thinking": thought, "signature": base64.b64encode(signature).decode()},
        {"type": "text", "text": f"[{MARK}] I look at `{path}` next."},
        {"type": "tool_use", "id": call, "name": "read_file", "input": {"path": path, "offset": 0, "limit": 400}},
    ]
    result = {"type": "tool_result", "tool_use_id": call, "content": f"[{MARK}]\n{text}"}
    return _dumps([{"role": "assistant", "content": content}, {"role": "user", "content": [result]}])


def _id(prefix: str, number: int) -> str:
    digits = hashlib.sha256(str(number).encode()).hexdigest()
    return prefix + digits[:24].translate(str.maketrans("0123456789", "ghijklmnop"))


def _dumps(values: list[dict[str, Any]]) -> str:
    """Values in the format of a JSON array as most clients write it, without the brackets."""
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False)[1:-1]


def _bytes(text: str) -> int:
    return len(text.encode())

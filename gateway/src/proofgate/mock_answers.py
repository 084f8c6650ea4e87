"""What the stand-in upstream answers: directives, texts, chunks and usage. Pure: no sockets, no clock."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

DIRECTIVES = """\
per request, through the model name:
  mock-fast               no latency, no interval between tokens, whatever the options say
per request, as words in the last user message:
  mock:status=500         answer with this error status (400-599)
  mock:latency=2000       wait this many milliseconds before the first byte
  mock:tokens=100         answer with this many tokens
  mock:interval=20        milliseconds between the tokens of a stream
  mock:cut=5              close the connection after 5 chunks of a stream, or half-way through a plain answer
  mock:stall=5            fall silent after 5 chunks of a stream, without closing
  mock:hang               never answer
  mock:id=abc             count this request under the id abc in /mock/stats

GET /mock/stats tells how many requests were started, completed, failed on purpose and given up by the
client, and how often each of the last 10000 ids was seen. Usage: a prompt has one token per word, an answer
as many as content chunks; max_tokens and max_completion_tokens shorten it (finish_reason "length").
"""

CREATED = 1_700_000_000  # constant, so that answers are the same bytes in every run
_TOKENS_MAXIMUM = 1_000_000


#: Header fields and a body.
Answered = tuple[list[tuple[bytes, bytes]], bytes]


@dataclass(frozen=True)
class Behaviour:
    """How to answer one request. Times in seconds; `cut` and `stall` in chunks."""

    latency: float = 0.0
    tokens: int = 8
    interval: float = 0.0
    status: int | None = None
    cut: int | None = None
    stall: int | None = None
    hang: bool = False
    id: str | None = None


class ClientError(Exception):
    """A request that a real provider refuses as well."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Exchange:
    """One parsed request for a chat completion and the parts of its answer."""

    id_prefix = "chatcmpl-mock"
    #: What a stream of its answers is.
    stream_type = b"text/event-stream"

    @classmethod
    def error(cls, _status: int, code: str, message: str) -> Answered:
        """The fields and the body of an error."""
        error = {"message": message, "type": "mock_error", "param": None, "code": code}
        return [], encode({"error": error})

    def __init__(self, body: bytes, default: Behaviour, number: int) -> None:
        try:
            request = json.loads(body)
        except ValueError:
            raise ClientError(400, "invalid_json", "the body is not JSON") from None
        if not isinstance(request, dict) or not isinstance(request.get("model"), str):
            raise ClientError(400, "missing_model", "you must provide a model parameter")
        texts = self.texts(request)
        last_user = next((text for role, text in reversed(texts) if role == "user"), "")

        self.id = f"{self.id_prefix}-{number}"
        self.model: str = request["model"]
        self.behaviour = directed(last_user, default, self.model)
        self.stream = request.get("stream") is True
        options = request.get("stream_options")
        self.include_usage = isinstance(options, dict) and options.get("include_usage") is True
        self.prompt_tokens = sum(len(text.split()) for _, text in texts)
        limit = self.limit(request)
        wanted = self.behaviour.tokens
        self.tokens = min(wanted, limit) if isinstance(limit, int) and limit > 0 else wanted
        self.finish_reason = "length" if self.tokens < wanted else "stop"

    def texts(self, request: dict[str, Any]) -> list[tuple[object, str]]:
        """The role and the text of each message."""
        return texts_of(request.get("messages"), "messages")

    def limit(self, request: dict[str, Any]) -> object:
        """How many tokens the answer may have."""
        return request.get("max_completion_tokens", request.get("max_tokens"))

    def pieces(self) -> list[str]:
        """The answer, one piece per token: the first one names the model."""
        return [f"{self.model}:", *(f" token{number}" for number in range(1, self.tokens))][: self.tokens]

    def usage(self) -> dict[str, int]:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.tokens,
            "total_tokens": self.prompt_tokens + self.tokens,
        }

    def completion(self) -> bytes:
        message = {"role": "assistant", "content": "".join(self.pieces()), "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish_reason}
        return encode({**self._frame("chat.completion"), "choices": [choice], "usage": self.usage()})

    def events(self) -> list[bytes]:
        """The server-sent events of a stream: role, content, finish, usage if asked for, and the end mark."""
        frame = self._frame("chat.completion.chunk")
        # Once usage is asked for, every chunk has the field, null in all but the last (OpenAI API reference).
        usage: dict[str, Any] = {"usage": None} if self.include_usage else {}

        def chunk(delta: dict[str, str], finish_reason: str | None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
            return b"data: %b\n\n" % encode({**frame, "choices": [choice], **usage})

        # One chunk is encoded and its content exchanged: encoding each would cost the machine under test.
        before, after = chunk({"content": "\0"}, None).rsplit(rb'"\u0000"', 1)
        events = [chunk({"role": "assistant", "content": ""}, None)]
        events += [b"%b%b%b" % (before, json.dumps(piece).encode(), after) for piece in self.pieces()]
        events.append(chunk({}, self.finish_reason))
        if self.include_usage:
            events.append(b"data: %b\n\n" % encode({**frame, "choices": [], "usage": self.usage()}))
        events.append(b"data: [DONE]\n\n")
        return events

    def _frame(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": CREATED,
            "model": self.model,
            "system_fingerprint": "mock",
        }


def directed(text: str, default: Behaviour, model: str) -> Behaviour:
    """The behaviour that a model name and the directives in a user message ask for."""
    behaviour = replace(default, latency=0.0, interval=0.0) if model == "mock-fast" else default
    if "mock:" not in text:
        return behaviour
    for word in text.split():
        if not word.startswith("mock:"):
            continue
        name, _, value = word.removeprefix("mock:").partition("=")
        match name:
            case "hang":
                behaviour = replace(behaviour, hang=True)
            case "id":
                behaviour = replace(behaviour, id=value)
            case "latency":
                behaviour = replace(behaviour, latency=_number(name, value, 0, 3_600_000) / 1000)
            case "interval":
                behaviour = replace(behaviour, interval=_number(name, value, 0, 3_600_000) / 1000)
            case "tokens":
                behaviour = replace(behaviour, tokens=_number(name, value, 1, _TOKENS_MAXIMUM))
            case "status":
                behaviour = replace(behaviour, status=_number(name, value, 400, 599))
            case "cut":
                behaviour = replace(behaviour, cut=_number(name, value, 0, _TOKENS_MAXIMUM))
            case "stall":
                behaviour = replace(behaviour, stall=_number(name, value, 0, _TOKENS_MAXIMUM))
            case _:
                raise ClientError(400, "unknown_directive", f"mock:{name} is not a directive: see --help")
    return behaviour


def _number(name: str, text: str, minimum: int, maximum: int) -> int:
    if not text.isascii() or not text.isdigit() or not minimum <= int(text[:12]) <= maximum:
        message = f"mock:{name} takes a number from {minimum} to {maximum}"
        raise ClientError(400, "invalid_directive", message)
    return int(text)


def encode(value: object) -> bytes:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


def texts_of(messages: object, name: str) -> list[tuple[object, str]]:
    """The role and the text of each message of a list. Raises ClientError when it is none."""
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise ClientError(400, f"invalid_{name}", f"{name} must be a list of objects")
    return [(message.get("role"), text_of(message.get("content"))) for message in messages]


def text_of(content: object) -> str:
    """The text of a message: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return " ".join(part for part in parts if isinstance(part, str))
    return ""

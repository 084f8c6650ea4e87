"""The responses of the mock upstream: directives, texts, calls, chunks, usage. Pure functions without sockets
and clock."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from proofgate.mock_logprobs import LogprobProfile, token_logprobs

DIRECTIVES = """\
per request, through the model name:
  mock-fast               no latency, no interval between tokens, regardless of the options
  mock-overloaded         503, always
per request, as words in the last user message:
  mock:status=500         answer with this error status (400-599)
  mock:latency=2000       wait this many milliseconds before the first byte
  mock:tokens=100         answer with this many tokens
  mock:calls=2            call the tools of the request in turn, this many times in total
  mock:interval=20        milliseconds between the tokens of a stream
  mock:cut=5              close the connection after 5 chunks of a stream, or half-way through a plain answer
  mock:stall=5            stop sending after 5 chunks of a stream, and keep the connection open
  mock:hang               never answer
  mock:id=abc             count this request under the id abc in /mock/stats

GET /mock/stats reports how many requests were started, completed, failed on purpose and aborted by the
client, and how often each of the last 10000 ids was seen. Usage: a prompt has one token per word, and an
answer has one token per content chunk. max_tokens and max_completion_tokens shorten the answer
(finish_reason "length").
A request with "logprobs": true gets the distribution of each token, which depends on the prompt and the
simulated model. The answer to a request with a JSON schema is a sample that conforms to it. The answer to
a request with pictures describes them.
"""

CREATED = 1_700_000_000  # constant, so that responses are the same bytes in every run
_TO_URL_SAFE = str.maketrans("+/", "-_")
_MAX_TOKENS = 1_000_000


@dataclass(frozen=True)
class MockBehaviour:
    """How to respond to one request. Times are in seconds, `cut` and `stall` in chunks."""

    latency: float = 0.0
    tokens: int = 8
    calls: int = 0
    interval: float = 0.0
    status: int | None = None
    cut: int | None = None
    stall: int | None = None
    hang: bool = False
    id: str | None = None
    logprob_profile: LogprobProfile = "a"


class ClientError(Exception):
    """A request that a real provider would refuse too."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool: the first one asks for `city-1`, the next for `city-2`."""

    number: int
    name: str

    @property
    def arguments(self) -> dict[str, Any]:
        return {"city": f"city-{self.number + 1}"}

    def fragments(self) -> list[str]:
        """The arguments as JSON, in two pieces."""
        text = encode(self.arguments).decode()
        return [text[:6], text[6:]]


class MockExchange:
    """One parsed request for a chat completion, and the parts of its response."""

    id_prefix = "chatcmpl-mock"
    #: Content type of a streamed response.
    stream_type = b"text/event-stream"
    #: Content type of a complete response.
    answer_type = b"application/json"

    def __init__(self, body: bytes, default: MockBehaviour, number: int, target: str = "") -> None:
        try:
            request = json.loads(body)
        except ValueError:
            raise ClientError(400, "invalid_json", "the body is not JSON") from None
        if not isinstance(request, dict):
            raise ClientError(400, "invalid_json", "the body is not an object")
        self.model, self.stream = self.model_and_stream(request, target)
        texts = self.texts(request)
        last_user = next((text for role, text in reversed(texts) if role == "user"), "")

        self.id = f"{self.id_prefix}-{number}"
        self.behaviour = parse_directives(last_user, default, self.model)
        options = request.get("stream_options")
        self.top_logprobs = request.get("top_logprobs", 0) if request.get("logprobs") is True else None
        self.prompt = last_user
        self.include_usage = isinstance(options, dict) and options.get("include_usage") is True
        self.prompt_tokens = sum(len(text.split()) for _, text in texts)
        limit = self.max_tokens(request)
        wanted = self.behaviour.tokens
        self.tokens = min(wanted, limit) if isinstance(limit, int) and limit > 0 else wanted
        self.calls = self._calls(self.tool_names(request))
        self.finish_reason = "tool_calls" if self.calls else "length" if self.tokens < wanted else "stop"
        schema = self.schema(request)
        self.sample = None if schema is None else encode(schema_sample(schema)).decode()
        self.pictures = [picture for part in _objects(request) if (picture := self.image(part))]

    def model_and_stream(self, request: dict[str, Any], target: str) -> tuple[str, bool]:
        """Returns the model, and whether a stream is requested. `target` is the path with its query."""
        del target
        if not isinstance(request.get("model"), str):
            raise ClientError(400, "missing_model", "you must provide a model parameter")
        return request["model"], request.get("stream") is True

    def texts(self, request: dict[str, Any]) -> list[tuple[object, str]]:
        """Returns the role and the text of each message."""
        return message_texts(request.get("messages"), "messages")

    def max_tokens(self, request: dict[str, Any]) -> object:
        """Returns the requested maximum number of tokens in the response."""
        return request.get("max_completion_tokens", request.get("max_tokens"))

    def tool_names(self, request: dict[str, Any]) -> list[str]:
        """Returns the names of the tools that the client runs."""
        return [tool["function"]["name"] for tool in request.get("tools") or [] if "function" in tool]

    def schema(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the JSON schema that the response must match; None without one."""
        wanted = request.get("response_format") or {}
        found: dict[str, Any] | None = (wanted.get("json_schema") or {}).get("schema")
        return found

    def image(self, part: dict[str, Any]) -> str | None:
        """Returns a description of the image in an object of the request; None if it is no image."""
        url = part.get("image_url")
        return data_url_content(url.get("url")) if isinstance(url, dict) else None

    def _calls(self, names: list[str]) -> list[ToolCall]:
        wanted = self.behaviour.calls
        if wanted and not names:
            raise ClientError(400, "no_tools", "mock:calls needs tools")
        return [ToolCall(number, names[number % len(names)]) for number in range(wanted)]

    def chunks(self) -> list[str]:
        """Returns the response's text, one piece per token. The first piece names the model and the
        images."""
        if self.calls:
            return []
        if self.sample is not None:
            return [self.sample]
        saw = "".join(f" saw {picture};" for picture in self.pictures)
        return [f"{self.model}:{saw}", *(f" token{number}" for number in range(1, self.tokens))][
            : self.tokens
        ]

    def usage(self) -> dict[str, int]:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.tokens,
            "total_tokens": self.prompt_tokens + self.tokens,
        }

    def completion(self) -> bytes:
        text = None if self.calls else "".join(self.chunks())
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if self.calls:
            message["tool_calls"] = [_tool_call(call, "".join(call.fragments())) for call in self.calls]
        logprobs = None if self.top_logprobs is None or self.calls else self._logprobs()
        choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": self.finish_reason}
        return encode({**self._frame("chat.completion"), "choices": [choice], "usage": self.usage()})

    def _logprobs(self) -> dict[str, Any]:
        top = self.top_logprobs
        count = top if isinstance(top, int) and 0 <= top <= 20 else 0
        return {"content": token_logprobs(self.chunks(), self.prompt, count, self.behaviour.logprob_profile)}

    def events(self) -> list[bytes]:
        """Returns the server-sent events of a stream: role, content, finish, usage if requested, and the end
        mark."""
        frame = self._frame("chat.completion.chunk")
        # If usage is requested, every chunk has the field, null in all except the last (OpenAI API
        # reference).
        usage: dict[str, Any] = {"usage": None} if self.include_usage else {}

        def chunk(delta: dict[str, Any], finish_reason: str | None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
            return b"data: %b\n\n" % encode({**frame, "choices": [choice], **usage})

        # Only one chunk is encoded, and its content replaced, because encoding each would slow the machine
        # under test.
        before, after = chunk({"content": "\0"}, None).rsplit(rb'"\u0000"', 1)
        events = [chunk({"role": "assistant", "content": ""}, None)]
        pieces = [b"%b%b%b" % (before, json.dumps(piece).encode(), after) for piece in self.chunks()]
        if self.top_logprobs is not None and pieces:
            told = b'"logprobs":%b' % encode(self._logprobs())
            pieces[0] = pieces[0].replace(b'"logprobs":null', told, 1)
        events += pieces
        for call in self.calls:
            events.append(chunk({"tool_calls": [{"index": call.number, **_tool_call(call, "")}]}, None))
            for fragment in call.fragments():
                piece = {"index": call.number, "function": {"arguments": fragment}}
                events.append(chunk({"tool_calls": [piece]}, None))
        events.append(chunk({}, self.finish_reason))
        if self.include_usage:
            events.append(b"data: %b\n\n" % encode({**frame, "choices": [], "usage": self.usage()}))
        events.append(b"data: [DONE]\n\n")
        return events

    @staticmethod
    def error_fields(status: int) -> list[tuple[bytes, bytes]]:
        """Returns the header fields of an error."""
        del status
        return []

    @staticmethod
    def error(status: int, code: str, message: str) -> bytes:
        """Returns the body of an error in the API's format."""
        del status
        return encode({"error": {"message": message, "type": "mock_error", "param": None, "code": code}})

    def _frame(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": CREATED,
            "model": self.model,
            "system_fingerprint": "mock",
        }


def parse_directives(text: str, default: MockBehaviour, model: str) -> MockBehaviour:
    """Returns the behaviour that a model name and the directives in a user message request."""
    behaviour = default
    if model == "mock-fast":
        behaviour = replace(default, latency=0.0, interval=0.0)
    elif model == "mock-overloaded":
        behaviour = replace(default, status=503)
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
                behaviour = replace(behaviour, tokens=_number(name, value, 1, _MAX_TOKENS))
            case "calls":
                behaviour = replace(behaviour, calls=_number(name, value, 1, 100))
            case "status":
                behaviour = replace(behaviour, status=_number(name, value, 400, 599))
            case "cut":
                behaviour = replace(behaviour, cut=_number(name, value, 0, _MAX_TOKENS))
            case "stall":
                behaviour = replace(behaviour, stall=_number(name, value, 0, _MAX_TOKENS))
            case _:
                raise ClientError(400, "unknown_directive", f"mock:{name} is not a directive: see --help")
    return behaviour


def _number(name: str, text: str, minimum: int, maximum: int) -> int:
    if not text.isascii() or not text.isdigit() or not minimum <= int(text[:12]) <= maximum:
        message = f"mock:{name} needs a number from {minimum} to {maximum}"
        raise ClientError(400, "invalid_directive", message)
    return int(text)


def schema_sample(schema: dict[str, Any]) -> Any:
    """Returns a value that a JSON schema, or Google's variant of one, allows."""
    if "enum" in schema:
        return schema["enum"][0]
    match str(schema.get("type", "object")).lower():
        case "object":
            return {name: schema_sample(field) for name, field in schema.get("properties", {}).items()}
        case "array":
            return [schema_sample(schema.get("items", {"type": "string"}))]
        case "integer" | "number":
            return 7
        case "boolean":
            return True
        case _:
            return "sample"


def data_url_content(url: object) -> str | None:
    """Returns a description of the content of a data URL; None for another URL."""
    if not isinstance(url, str) or not url.startswith("data:"):
        return None
    kind, _, data = url.removeprefix("data:").partition(";base64,")
    # Google's clients use the URL-safe alphabet.
    return f"{kind} of {len(base64.urlsafe_b64decode(data.translate(_TO_URL_SAFE)))} bytes"


def _objects(value: object) -> Iterator[dict[str, Any]]:
    """Yields every object in a document, outer objects first."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _objects(inner)


def _tool_call(call: ToolCall, arguments: str) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments}
    return {"id": f"call_mock_{call.number}", "type": "function", "function": function}


def encode(value: object) -> bytes:
    """Encodes a value as compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


def message_texts(messages: object, name: str) -> list[tuple[object, str]]:
    """Returns the role and the text of each message in a list. Raises ClientError if it is not a list of
    messages."""
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise ClientError(400, f"invalid_{name}", f"{name} must be a list of objects")
    return [(message.get("role"), message_text(message.get("content"))) for message in messages]


def message_text(content: object) -> str:
    """Returns the text of a message: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return " ".join(part for part in parts if isinstance(part, str))
    return ""

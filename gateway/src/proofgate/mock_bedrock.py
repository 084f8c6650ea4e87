"""The mock upstream's Amazon Bedrock: Converse and InvokeModel for Claude models, complete and as frames.

Source of the shapes: botocore 1.44.5, service model bedrock-runtime 2023-09-30.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from proofgate.mock_answers import (
    ClientError,
    MockExchange,
    ToolCall,
    data_url_content,
    encode,
    message_text,
    message_texts,
)
from proofgate.mock_dialects import MessagesExchange

#: Bedrock's exception names for the statuses that a request can ask for.
_EXCEPTIONS = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
_PATH = re.compile(r"/model/([^/]+)/(converse|converse-stream|invoke|invoke-with-response-stream)")


class Bedrock(MockExchange):
    """The common parts of the operations: errors, and streams of frames."""

    stream_type = b"application/vnd.amazon.eventstream"

    def model_and_stream(self, request: dict[str, Any], target: str) -> tuple[str, bool]:
        del request
        found = _PATH.fullmatch(target)
        if found is None:
            raise ClientError(400, "unknown_path", "the path names no model, or has a query")
        return unquote(found[1]), found[2].endswith("-stream")

    @staticmethod
    def error_fields(status: int) -> list[tuple[bytes, bytes]]:
        return [(b"x-amzn-errortype", _EXCEPTIONS.get(status, "InternalServerException").encode())]

    @staticmethod
    def error(status: int, code: str, message: str) -> bytes:
        del status
        return encode({"message": f"{message} ({code})"})


class Converse(Bedrock):
    """`POST /model/{id}/converse` and `/converse-stream`."""

    def texts(self, request: dict[str, Any]) -> list[tuple[object, str]]:
        return [
            ("system", message_text(request.get("system"))),
            *message_texts(request.get("messages"), "messages"),
        ]

    def max_tokens(self, request: dict[str, Any]) -> object:
        config = request.get("inferenceConfig")
        return config.get("maxTokens") if isinstance(config, dict) else None

    def tool_names(self, request: dict[str, Any]) -> list[str]:
        tools = (request.get("toolConfig") or {}).get("tools") or []
        return [tool["toolSpec"]["name"] for tool in tools if "toolSpec" in tool]

    def schema(self, request: dict[str, Any]) -> dict[str, Any] | None:
        wanted = (request.get("outputConfig") or {}).get("textFormat")
        if wanted is None:
            return None
        # The schema is a JSON document in a string.
        found: dict[str, Any] = json.loads(wanted["structure"]["jsonSchema"]["schema"])
        return found

    def image(self, part: dict[str, Any]) -> str | None:
        image = part.get("image")
        if not isinstance(image, dict) or "format" not in image:
            return None
        return data_url_content(f"data:image/{image['format']};base64,{image['source']['bytes']}")

    def completion(self) -> bytes:
        message = {"role": "assistant", "content": self._content()}
        end = {"stopReason": self._stop_reason(), **self._metadata()}
        return encode({"output": {"message": message}, **end})

    def _content(self) -> list[dict[str, Any]]:
        if self.calls:
            return [{"toolUse": {**_tool_use_start(call), "input": call.arguments}} for call in self.calls]
        return [{"text": "".join(self.chunks())}]

    def events(self) -> list[bytes]:
        return [
            frame("messageStart", {"role": "assistant"}),
            *(self._call_frames() if self.calls else self._text_frames()),
            frame("messageStop", {"stopReason": self._stop_reason()}),
            frame("metadata", self._metadata()),
        ]

    def _text_frames(self) -> Iterator[bytes]:
        """Yields the frames of a text block, which has no start frame, unlike other blocks."""
        for piece in self.chunks():
            yield frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}})
        yield frame("contentBlockStop", {"contentBlockIndex": 0})

    def _call_frames(self) -> Iterator[bytes]:
        for call in self.calls:
            at = {"contentBlockIndex": call.number}
            yield frame("contentBlockStart", {**at, "start": {"toolUse": _tool_use_start(call)}})
            for fragment in call.fragments():
                yield frame("contentBlockDelta", {**at, "delta": {"toolUse": {"input": fragment}}})
            yield frame("contentBlockStop", at)

    def _stop_reason(self) -> str:
        return {"length": "max_tokens", "tool_calls": "tool_use"}.get(self.finish_reason, "end_turn")

    def _metadata(self) -> dict[str, Any]:
        usage = {
            "inputTokens": self.prompt_tokens,
            "outputTokens": self.tokens,
            "totalTokens": self.prompt_tokens + self.tokens,
        }
        return {"usage": usage, "metrics": {"latencyMs": 1}}


class Invoke(Bedrock, MessagesExchange):
    """`POST /model/{id}/invoke` and `/invoke-with-response-stream` of a Claude model."""

    id_prefix = "msg_bdrk_mock"

    def max_tokens(self, request: dict[str, Any]) -> object:
        if "anthropic_version" not in request:
            raise ClientError(400, "missing_version", "anthropic_version: Field required")
        return super().max_tokens(request)

    def events(self) -> list[bytes]:
        return [wrap_event(json.loads(event.split(b"data: ", 1)[1])) for event in super().events()]


def endpoint(path: str) -> type[Bedrock] | None:
    """Returns the class that serves a percent-encoded path; None for an unknown path."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    return Converse if found[2].startswith("converse") else Invoke


def frame(event_type: str, payload: object, message_type: str = "event") -> bytes:
    """Encodes an event or an exception as a frame of Amazon's event stream encoding."""
    headers = b"".join(
        struct.pack(f">B{len(name)}sBH{len(value)}s", len(name), name, 7, len(value), value)
        for name, value in (
            (f":{message_type}-type".encode(), event_type.encode()),
            (b":content-type", b"application/json"),
            (b":message-type", message_type.encode()),
        )
    )
    body = encode(payload)
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    whole = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + body
    return whole + struct.pack(">I", zlib.crc32(whole))


def wrap_event(event: object) -> bytes:
    """Encodes an event of a model's own API as a frame, padded like Bedrock's frames."""
    return frame("chunk", {"bytes": base64.b64encode(encode(event)).decode(), "p": "abcdefgh"})


def _tool_use_start(call: ToolCall) -> dict[str, Any]:
    return {"toolUseId": f"tooluse_mock_{call.number}", "name": call.name}

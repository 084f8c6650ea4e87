"""The mock upstream's endpoints of OpenAI that return images and audio."""

from __future__ import annotations

import base64
from typing import Any

from proofgate.mock_answers import CREATED, ClientError, MockExchange, encode

#: Bytes of media for one token of a response.
_BYTES_PER_TOKEN = 64
_PNG = b"\x89PNG\r\n\x1a\n"
_MP3 = b"\xff\xfb\x90\x64"


class Image(MockExchange):
    """`POST /v1/images/generations`. The size of the image is proportional to the tokens of the response."""

    def texts(self, request: dict[str, Any]) -> list[tuple[object, str]]:
        self.count = request.get("n") or 1
        self.partial_images = request.get("partial_images") or 0
        return [("user", _text(request, "prompt"))]

    def completion(self) -> bytes:
        images = [{"b64_json": self._data(), "revised_prompt": f"{self.model}: as asked"}] * self.count
        kind = {"background": "opaque", "output_format": "png", "quality": "low", "size": "1024x1024"}
        return encode({"created": CREATED, "data": images, **kind, "usage": self._usage()})

    def events(self) -> list[bytes]:
        kind = {"background": "opaque", "output_format": "png", "quality": "low", "size": "1024x1024"}
        image = {"b64_json": self._data(), "created_at": CREATED, **kind}
        partial = [
            _event("image_generation.partial_image", {**image, "partial_image_index": number})
            for number in range(self.partial_images)
        ]
        return [*partial, _event("image_generation.completed", {**image, "usage": self._usage()})]

    def _data(self) -> str:
        return base64.b64encode(_PNG + bytes(_BYTES_PER_TOKEN * self.tokens)).decode()

    def _usage(self) -> dict[str, Any]:
        output = self.tokens * self.count
        return {
            "input_tokens": self.prompt_tokens,
            "input_tokens_details": {"image_tokens": 0, "text_tokens": self.prompt_tokens},
            "output_tokens": output,
            "total_tokens": self.prompt_tokens + output,
        }


class Speech(MockExchange):
    """`POST /v1/audio/speech`."""

    answer_type = b"audio/mpeg"

    def model_and_stream(self, request: dict[str, Any], target: str) -> tuple[str, bool]:
        return super().model_and_stream(request, target)[0], request.get("stream_format") == "sse"

    def texts(self, request: dict[str, Any]) -> list[tuple[object, str]]:
        return [("user", _text(request, "input"))]

    def completion(self) -> bytes:
        return b"".join(self._audio_chunks())

    def events(self) -> list[bytes]:
        usage = {
            "input_tokens": self.prompt_tokens,
            "output_tokens": self.tokens,
            "total_tokens": self.prompt_tokens + self.tokens,
        }
        pieces = [
            _event("speech.audio.delta", {"audio": base64.b64encode(piece).decode()})
            for piece in self._audio_chunks()
        ]
        return [*pieces, _event("speech.audio.done", {"usage": usage})]

    def _audio_chunks(self) -> list[bytes]:
        return [_MP3 + bytes(_BYTES_PER_TOKEN)] * self.tokens


def _text(request: dict[str, Any], name: str) -> str:
    found = request.get(name)
    if not isinstance(found, str):
        raise ClientError(400, f"invalid_{name}", f"{name} must be a text")
    return found


def _event(kind: str, fields: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode({"type": kind, **fields}))

"""The mock upstream's endpoints of Google's API, in which the path names the model."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from proofgate.mock_answers import ClientError, MockExchange, data_url_content, encode

#: Numbers of an embedding; a real embedding has hundreds of numbers.
EMBEDDING = [0.5, -0.25, 1.0, 0.1]
#: Google's name of the error for each status (google.rpc.Code).
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class GeneratedContent(MockExchange):
    """`POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`."""

    id_prefix = "gen-mock"

    def model_and_stream(self, request: dict[str, Any], target: str) -> tuple[str, bool]:
        if "model" in request:
            raise ClientError(400, "unknown_field", "the path names the model")
        path, _, query = target.partition("?")
        name, _, method = path.rpartition(":")
        stream = method == "streamGenerateContent"
        if stream != (query == "alt=sse"):
            raise ClientError(
                400, "unknown_query", "use the query alt=sse for a stream, and only for a stream"
            )
        return unquote(name.partition("/models/")[2]), stream

    def texts(self, request: dict[str, Any]) -> list[tuple[object, str]]:
        contents = request.get("contents")
        if not isinstance(contents, list) or not all(isinstance(content, dict) for content in contents):
            raise ClientError(400, "invalid_contents", "contents must be a list of objects")
        system = [("system", _text(request.get("systemInstruction") or {}))]
        return [*system, *((content.get("role", "user"), _text(content)) for content in contents)]

    def max_tokens(self, request: dict[str, Any]) -> object:
        return (request.get("generationConfig") or {}).get("maxOutputTokens")

    def tool_names(self, request: dict[str, Any]) -> list[str]:
        tools = request.get("tools") or []
        return [tool["name"] for kind in tools for tool in kind.get("functionDeclarations") or []]

    def schema(self, request: dict[str, Any]) -> dict[str, Any] | None:
        wanted = request.get("generationConfig") or {}
        if wanted.get("responseMimeType") != "application/json":
            return None
        found: dict[str, Any] | None = wanted.get("responseJsonSchema", wanted.get("responseSchema"))
        return found

    def image(self, part: dict[str, Any]) -> str | None:
        given = part.get("inlineData")
        if not given:
            return None
        # Google accepts both spellings, and its Python client uses the second one here.
        kind = given.get("mimeType", given.get("mime_type"))
        return data_url_content(f"data:{kind};base64,{given['data']}")

    @staticmethod
    def error(status: int, code: str, message: str) -> bytes:
        details: list[dict[str, Any]] = [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code.upper(), "domain": "mock"}
        ]
        if status in (429, 503):
            # Google returns the time to wait here, not in Retry-After.
            details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"})
        name = _STATUSES.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")
        return encode({"error": {"code": status, "message": message, "status": name, "details": details}})

    def completion(self) -> bytes:
        called = [_function_call(call.name, call.arguments) for call in self.calls]
        parts = called or [{"text": "".join(self.chunks())}]
        return encode(self._response_chunk(parts, self.tokens, True))

    def events(self) -> list[bytes]:
        """Returns the events: one call in each, and the finish reason in the last one. Usage is
        cumulative."""
        parts = [_function_call(call.name, call.arguments) for call in self.calls]
        parts = parts or [{"text": piece} for piece in self.chunks()]
        answers = [self._response_chunk([part], number, False) for number, part in enumerate(parts, 1)]
        answers.append(self._response_chunk([{"text": ""}], self.tokens, True))
        return [b"data: %b\r\n\r\n" % encode(answer) for answer in answers]

    def _response_chunk(self, parts: list[dict[str, Any]], tokens: int, last: bool) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if last:
            # Google has no separate finish reason for tool calls.
            candidate["finishReason"] = "MAX_TOKENS" if self.finish_reason == "length" else "STOP"
        usage = {
            "promptTokenCount": self.prompt_tokens,
            "candidatesTokenCount": tokens,
            "totalTokenCount": self.prompt_tokens + tokens,
        }
        return {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": self.model,
            "responseId": self.id,
        }


class GeneratedTokens(GeneratedContent):
    """`POST /v1beta/models/{model}:countTokens`."""

    def completion(self) -> bytes:
        return encode({"totalTokens": self.prompt_tokens})


class GeneratedEmbedding(GeneratedContent):
    """`POST /v1beta/models/{model}:embedContent`."""

    def texts(self, request: dict[str, Any]) -> list[tuple[object, str]]:
        content = request.get("content")
        if not isinstance(content, dict):
            raise ClientError(400, "invalid_content", "content must be an object")
        return [("user", _text(content))]

    def completion(self) -> bytes:
        return encode({"embedding": {"values": EMBEDDING}})


class GeneratedEmbeddings(GeneratedContent):
    """`POST /v1beta/models/{model}:batchEmbedContents`: each request names the model of the path."""

    def texts(self, request: dict[str, Any]) -> list[tuple[object, str]]:
        requests = request.get("requests")
        if not isinstance(requests, list) or not all(isinstance(one, dict) for one in requests):
            raise ClientError(400, "invalid_requests", "requests must be a list of objects")
        if any(one.get("model") != f"models/{self.model}" for one in requests):
            raise ClientError(400, "wrong_model", "a request is for another model than the path names")
        self.count = len(requests)
        return [("user", _text(one.get("content") or {})) for one in requests]

    def completion(self) -> bytes:
        usage = {"promptTokenCount": self.prompt_tokens, "totalTokenCount": self.prompt_tokens}
        return encode({"embeddings": [{"values": EMBEDDING}] * self.count, "usageMetadata": usage})


def _text(content: dict[str, Any]) -> str:
    parts = content.get("parts") or []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return " ".join(text for text in texts if isinstance(text, str))


def _function_call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": arguments}}

"""The mock upstream's other endpoints of OpenAI and Anthropic. Each responds in the format of its API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proofgate.mock_answers import (
    CREATED,
    ClientError,
    MockExchange,
    data_url_content,
    encode,
    message_text,
    message_texts,
)
from proofgate.mock_google import (
    GeneratedContent,
    GeneratedEmbedding,
    GeneratedEmbeddings,
    GeneratedTokens,
)
from proofgate.mock_media import Image, Speech

#: Length of an embedding; a real embedding has hundreds of numbers.
_DIMENSIONS = 4
#: Categories of a moderation.
_CATEGORIES = (
    *("harassment", "harassment/threatening", "hate", "hate/threatening", "illicit", "illicit/violent"),
    *("self-harm", "self-harm/intent", "self-harm/instructions", "sexual", "sexual/minors"),
    *("violence", "violence/graphic"),
)


class TextCompletion(MockExchange):
    """`POST /v1/completions`."""

    id_prefix = "cmpl-mock"

    def texts(self, request: dict[str, Any]) -> list[tuple[object, str]]:
        return _inputs(request.get("prompt"), "prompt")

    def completion(self) -> bytes:
        return encode({**self._frame("text_completion"), **self._choice("".join(self.chunks()), True)})

    def events(self) -> list[bytes]:
        frame = self._frame("text_completion")
        events = [_data({**frame, **self._choice(piece, False)}) for piece in self.chunks()]
        events.append(_data({**frame, **self._choice("", True)}))
        if self.include_usage:
            events.append(_data({**frame, "choices": [], "usage": self.usage()}))
        return [*events, b"data: [DONE]\n\n"]

    def _choice(self, text: str, last: bool) -> dict[str, Any]:
        choice = {
            "index": 0,
            "text": text,
            "logprobs": None,
            "finish_reason": self.finish_reason if last else None,
        }
        return {"choices": [choice], **({"usage": self.usage()} if last and not self.stream else {})}


class Embedding(MockExchange):
    """`POST /v1/embeddings`."""

    def texts(self, request: dict[str, Any]) -> list[tuple[object, str]]:
        found = _inputs(request.get("input"), "input")
        self.count = len(found)
        return found

    def completion(self) -> bytes:
        vector = [0.5] * _DIMENSIONS
        data = [{"object": "embedding", "index": index, "embedding": vector} for index in range(self.count)]
        usage = {"prompt_tokens": self.prompt_tokens, "total_tokens": self.prompt_tokens}
        return encode({"object": "list", "data": data, "model": self.model, "usage": usage})


class Moderation(Embedding):
    """`POST /v1/moderations`: nothing is flagged."""

    id_prefix = "modr-mock"

    def completion(self) -> bytes:
        result = {
            "flagged": False,
            "categories": dict.fromkeys(_CATEGORIES, False),
            "category_scores": dict.fromkeys(_CATEGORIES, 0.0),
            "category_applied_input_types": {category: ["text"] for category in _CATEGORIES},
        }
        return encode({"id": self.id, "model": self.model, "results": [result] * self.count})


class ResponsesExchange(MockExchange):
    """`POST /v1/responses`."""

    id_prefix = "resp-mock"

    def texts(self, request: dict[str, Any]) -> list[tuple[object, str]]:
        given = request.get("input")
        instructions = [("system", message_text(request.get("instructions")))]
        return instructions + ([("user", given)] if isinstance(given, str) else message_texts(given, "input"))

    def max_tokens(self, request: dict[str, Any]) -> object:
        return request.get("max_output_tokens")

    def tool_names(self, request: dict[str, Any]) -> list[str]:
        return [tool["name"] for tool in request.get("tools") or [] if tool.get("type") == "function"]

    def schema(self, request: dict[str, Any]) -> dict[str, Any] | None:
        found: dict[str, Any] | None = ((request.get("text") or {}).get("format") or {}).get("schema")
        return found

    def image(self, part: dict[str, Any]) -> str | None:
        return data_url_content(part.get("image_url"))

    def completion(self) -> bytes:
        return encode(self._response(True))

    def events(self) -> list[bytes]:
        return [
            _event(event["type"], {**event, "sequence_number": number})
            for number, event in enumerate(self._events())
        ]

    def _events(self) -> Iterator[dict[str, Any]]:
        yield {"type": "response.created", "response": self._response(False)}
        yield {"type": "response.in_progress", "response": self._response(False)}
        if self.calls:
            yield from self._call_events()
        else:
            yield from self._text_events()
        end = "response.incomplete" if self.finish_reason == "length" else "response.completed"
        yield {"type": end, "response": self._response(True)}

    def _call_events(self) -> Iterator[dict[str, Any]]:
        for item, call in zip(self._call_items(), self.calls, strict=True):
            at = {"output_index": call.number}
            empty = {**item, "arguments": "", "status": "in_progress"}
            yield {"type": "response.output_item.added", **at, "item": empty}
            of_item = {**at, "item_id": item["id"]}
            for fragment in call.fragments():
                yield {"type": "response.function_call_arguments.delta", **of_item, "delta": fragment}
            done = {"name": call.name, "arguments": item["arguments"]}
            yield {"type": "response.function_call_arguments.done", **of_item, **done}
            yield {"type": "response.output_item.done", **at, "item": item}

    def _text_events(self) -> Iterator[dict[str, Any]]:
        at = {"item_id": f"{self.id}-item", "output_index": 0, "content_index": 0}
        empty = {**self._item(""), "content": [], "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": 0, "item": empty}
        yield {"type": "response.content_part.added", **at, "part": self._part("")}
        for piece in self.chunks():
            yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
        text = "".join(self.chunks())
        yield {"type": "response.output_text.done", **at, "text": text, "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": self._part(text)}
        yield {"type": "response.output_item.done", "output_index": 0, "item": self._item(text)}

    def _call_items(self) -> list[dict[str, Any]]:
        def item(number: int, name: str, arguments: str) -> dict[str, Any]:
            ids = {"id": f"{self.id}-call{number}", "call_id": f"call_mock_{number}"}
            return {
                "type": "function_call",
                **ids,
                "name": name,
                "arguments": arguments,
                "status": "completed",
            }

        return [item(call.number, call.name, "".join(call.fragments())) for call in self.calls]

    def _output(self) -> list[dict[str, Any]]:
        return self._call_items() if self.calls else [self._item("".join(self.chunks()))]

    def _part(self, text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": []}

    def _item(self, text: str) -> dict[str, Any]:
        return {
            "type": "message",
            "id": f"{self.id}-item",
            "status": "completed",
            "role": "assistant",
            "content": [self._part(text)],
        }

    def _response(self, over: bool) -> dict[str, Any]:
        short = self.finish_reason == "length"
        usage = {
            "input_tokens": self.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": self.tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self.prompt_tokens + self.tokens,
        }
        return {
            "id": self.id,
            "object": "response",
            "created_at": CREATED,
            "status": "in_progress" if not over else "incomplete" if short else "completed",
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if over and short else None,
            "instructions": None,
            "model": self.model,
            "output": self._output() if over else [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage if over else None,
            "metadata": {},
        }


class MessagesExchange(MockExchange):
    """`POST /v1/messages` of Anthropic."""

    id_prefix = "msg-mock"

    def texts(self, request: dict[str, Any]) -> list[tuple[object, str]]:
        return [
            ("system", message_text(request.get("system"))),
            *message_texts(request.get("messages"), "messages"),
        ]

    def max_tokens(self, request: dict[str, Any]) -> object:
        limit = request.get("max_tokens")
        if not isinstance(limit, int):
            raise ClientError(400, "missing_max_tokens", "max_tokens: Field required")
        return limit

    def tool_names(self, request: dict[str, Any]) -> list[str]:
        return [tool["name"] for tool in request.get("tools") or []]

    def schema(self, request: dict[str, Any]) -> dict[str, Any] | None:
        wanted = (request.get("output_config") or {}).get("format") or {}
        found: dict[str, Any] | None = wanted.get("schema")
        return found

    def image(self, part: dict[str, Any]) -> str | None:
        if part.get("type") != "base64" or "media_type" not in part:
            return None
        return data_url_content(f"data:{part['media_type']};base64,{part['data']}")

    @staticmethod
    def error(status: int, code: str, message: str) -> bytes:
        kind = _ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        error = {"type": kind, "message": f"{code}: {message}"}
        return encode({"type": "error", "error": error, "request_id": None})

    def completion(self) -> bytes:
        return encode(self._message(self._content(), self._stop_reason(), self.tokens))

    def _content(self) -> list[dict[str, Any]]:
        def called(number: int, name: str, given: dict[str, Any]) -> dict[str, Any]:
            return {"type": "tool_use", "id": f"toolu_mock_{number}", "name": name, "input": given}

        if self.calls:
            return [called(call.number, call.name, call.arguments) for call in self.calls]
        return [{"type": "text", "text": "".join(self.chunks())}]

    def events(self) -> list[bytes]:
        def event(kind: str, **fields: Any) -> bytes:
            return _event(kind, {"type": kind, **fields})

        blocks: list[bytes] = []
        for index, block in enumerate(self._content()):
            is_text = block["type"] == "text"
            empty = {**block, "text": ""} if is_text else {**block, "input": {}}
            blocks.append(event("content_block_start", index=index, content_block=empty))
            if index == 0:
                blocks.append(event("ping"))
            for piece in self.chunks() if is_text else self.calls[index].fragments():
                kind, field = ("text_delta", "text") if is_text else ("input_json_delta", "partial_json")
                blocks.append(event("content_block_delta", index=index, delta={"type": kind, field: piece}))
            blocks.append(event("content_block_stop", index=index))
        end = {"stop_reason": self._stop_reason(), "stop_sequence": None}
        return [
            event("message_start", message=self._message([], None, 1)),
            *blocks,
            event("message_delta", delta=end, usage={"output_tokens": self.tokens}),
            event("message_stop"),
        ]

    def _stop_reason(self) -> str:
        return {"length": "max_tokens", "tool_calls": "tool_use"}.get(self.finish_reason, "end_turn")

    def _message(self, content: list[dict[str, Any]], stop: str | None, output: int) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": self.prompt_tokens, "output_tokens": output},
        }


class TokenCount(MessagesExchange):
    """`POST /v1/messages/count_tokens` of Anthropic."""

    def max_tokens(self, _request: dict[str, Any]) -> object:
        return None

    def completion(self) -> bytes:
        return encode({"input_tokens": self.prompt_tokens})


class ResponseTokenCount(ResponsesExchange):
    """`POST /v1/responses/input_tokens` of OpenAI."""

    def max_tokens(self, _request: dict[str, Any]) -> object:
        return None

    def completion(self) -> bytes:
        return encode({"object": "response.input_tokens", "input_tokens": self.prompt_tokens})


ENDPOINTS: dict[str, type[MockExchange]] = {
    "/v1/chat/completions": MockExchange,
    "/v1/completions": TextCompletion,
    "/v1/responses": ResponsesExchange,
    "/v1/responses/input_tokens": ResponseTokenCount,
    "/v1/embeddings": Embedding,
    "/v1/moderations": Moderation,
    "/v1/images/generations": Image,
    "/v1/audio/speech": Speech,
    "/v1/messages": MessagesExchange,
    "/v1/messages/count_tokens": TokenCount,
}


def endpoint_at(path: str) -> type[MockExchange] | None:
    """Returns the class that serves a path; None for an unknown path."""
    if path in ENDPOINTS:
        return ENDPOINTS[path]
    if path.startswith("/v1/deployments/"):
        # Azure's paths: the endpoint follows the name of the deployment.
        name, _, rest = path.removeprefix("/v1/deployments/").partition("/")
        return ENDPOINTS.get(f"/v1/{rest}") if name else None
    if not path.startswith(("/v1/models/", "/v1beta/models/")):
        return None
    return _GOOGLE.get(path.rpartition(":")[2])


_GOOGLE: dict[str, type[MockExchange]] = {
    "generateContent": GeneratedContent,
    "streamGenerateContent": GeneratedContent,
    "countTokens": GeneratedTokens,
    "embedContent": GeneratedEmbedding,
    "batchEmbedContents": GeneratedEmbeddings,
}

#: Types of Anthropic's errors (Anthropic, "Errors").
_ERRORS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def _inputs(given: object, name: str) -> list[tuple[object, str]]:
    """Returns each text of a field with one or several texts; for tokens, their numbers."""
    if isinstance(given, str):
        return [("user", given)]
    if not isinstance(given, list) or not given:
        raise ClientError(400, f"invalid_{name}", f"{name} must be a text or a list")
    if all(isinstance(number, int) for number in given):
        return [("user", " ".join(map(str, given)))]
    return [("user", item if isinstance(item, str) else message_text([item])) for item in given]


def _data(value: object) -> bytes:
    return b"data: %b\n\n" % encode(value)


def _event(name: str, value: object) -> bytes:
    return b"event: %b\n%b" % (name.encode(), _data(value))

"""The stand-in upstream's other endpoints: each answers as its API does, with the same texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proofgate.mock_answers import CREATED, ClientError, Exchange, encode, text_of, texts_of

#: Numbers of an embedding; a real one has hundreds.
_DIMENSIONS = 4


class TextCompletion(Exchange):
    """`POST /v1/completions`."""

    id_prefix = "cmpl-mock"

    def texts(self, request: dict[str, Any]) -> list[tuple[object, str]]:
        return _inputs(request.get("prompt"), "prompt")

    def completion(self) -> bytes:
        return encode({**self._frame("text_completion"), **self._choice("".join(self.pieces()), True)})

    def events(self) -> list[bytes]:
        frame = self._frame("text_completion")
        events = [_data({**frame, **self._choice(piece, False)}) for piece in self.pieces()]
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


class Embedding(Exchange):
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
        result = {"flagged": False, "categories": {}, "category_scores": {}}
        return encode({"id": self.id, "model": self.model, "results": [result] * self.count})


class Response(Exchange):
    """`POST /v1/responses`."""

    id_prefix = "resp-mock"

    def texts(self, request: dict[str, Any]) -> list[tuple[object, str]]:
        given = request.get("input")
        instructions = [("system", text_of(request.get("instructions")))]
        return instructions + ([("user", given)] if isinstance(given, str) else texts_of(given, "input"))

    def limit(self, request: dict[str, Any]) -> object:
        return request.get("max_output_tokens")

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
        at = {"item_id": f"{self.id}-item", "output_index": 0, "content_index": 0}
        empty = {**self._item(""), "content": [], "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": 0, "item": empty}
        yield {"type": "response.content_part.added", **at, "part": self._part("")}
        for piece in self.pieces():
            yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
        text = "".join(self.pieces())
        yield {"type": "response.output_text.done", **at, "text": text, "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": self._part(text)}
        yield {"type": "response.output_item.done", "output_index": 0, "item": self._item(text)}
        end = "response.incomplete" if self.finish_reason == "length" else "response.completed"
        yield {"type": end, "response": self._response(True)}

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
            "input_tokens_details": {"cached_tokens": 0},
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
            "output": [self._item("".join(self.pieces()))] if over else [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage if over else None,
            "metadata": {},
        }


class Message(Exchange):
    """`POST /v1/messages` of Anthropic."""

    id_prefix = "msg-mock"

    def texts(self, request: dict[str, Any]) -> list[tuple[object, str]]:
        return [("system", text_of(request.get("system"))), *texts_of(request.get("messages"), "messages")]

    def limit(self, request: dict[str, Any]) -> object:
        limit = request.get("max_tokens")
        if not isinstance(limit, int):
            raise ClientError(400, "missing_max_tokens", "max_tokens: Field required")
        return limit

    def completion(self) -> bytes:
        content = [{"type": "text", "text": "".join(self.pieces())}]
        return encode(self._message(content, self._stop_reason(), self.tokens))

    def events(self) -> list[bytes]:
        def delta(text: str) -> bytes:
            piece = {"type": "text_delta", "text": text}
            return _event("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": piece})

        block = {"index": 0, "content_block": {"type": "text", "text": ""}}
        end = {"stop_reason": self._stop_reason(), "stop_sequence": None}
        return [
            _event("message_start", {"type": "message_start", "message": self._message([], None, 1)}),
            _event(
                "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
            ),
            _event("ping", {"type": "ping"}),
            *(delta(piece) for piece in self.pieces()),
            _event("content_block_stop", {"type": "content_block_stop", "index": 0}),
            _event(
                "message_delta",
                {"type": "message_delta", "delta": end, "usage": {"output_tokens": self.tokens}},
            ),
            _event("message_stop", {"type": "message_stop"}),
        ]

    def _stop_reason(self) -> str:
        return "max_tokens" if self.finish_reason == "length" else "end_turn"

    def _message(self, content: list[dict[str, str]], stop: str | None, output: int) -> dict[str, Any]:
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


class TokenCount(Message):
    """`POST /v1/messages/count_tokens` of Anthropic."""

    def limit(self, _request: dict[str, Any]) -> object:
        return None

    def completion(self) -> bytes:
        return encode({"input_tokens": self.prompt_tokens})


ENDPOINTS: dict[str, type[Exchange]] = {
    "/v1/chat/completions": Exchange,
    "/v1/completions": TextCompletion,
    "/v1/responses": Response,
    "/v1/embeddings": Embedding,
    "/v1/moderations": Moderation,
    "/v1/messages": Message,
    "/v1/messages/count_tokens": TokenCount,
}


def _inputs(given: object, name: str) -> list[tuple[object, str]]:
    """Each text of a field that holds one or several; of tokens, their numbers."""
    if isinstance(given, str):
        return [("user", given)]
    if not isinstance(given, list) or not given:
        raise ClientError(400, f"invalid_{name}", f"{name} must be a text or a list")
    if all(isinstance(number, int) for number in given):
        return [("user", " ".join(map(str, given)))]
    return [("user", item if isinstance(item, str) else text_of([item])) for item in given]


def _data(value: object) -> bytes:
    return b"data: %b\n\n" % encode(value)


def _event(name: str, value: object) -> bytes:
    return b"event: %b\n%b" % (name.encode(), _data(value))

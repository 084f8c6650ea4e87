"""The mock upstream's answers have the types that the providers' own packages publish."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from anthropic.types import Message, MessageTokensCount, RawMessageStreamEvent
from google.genai.types import CountTokensResponse, EmbedContentResponse, GenerateContentResponse
from openai.types import (
    Completion,
    CreateEmbeddingResponse,
    ImageGenStreamEvent,
    ImagesResponse,
    ModerationCreateResponse,
)
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import InputTokenCountResponse, Response, ResponseStreamEvent
from pydantic import TypeAdapter

from proofgate import mock_bedrock, mock_vertex
from proofgate.mock_answers import MockBehaviour
from proofgate.mock_dialects import endpoint_at

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
}
PNG = "iVBORw0KGgo="
#: The parts of each dialect's requests: a text, tools, a response schema, a picture.
CHAT: dict[str, Any] = {
    "text": lambda text: {"messages": [{"role": "user", "content": text}]},
    "tools": {"tools": [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]},
    "schema": {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}},
    "picture": {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}],
            }
        ]
    },
}
RESPONSES: dict[str, Any] = {
    "text": lambda text: {"input": text},
    "tools": {"tools": [{"type": "function", "name": "look", "parameters": SCHEMA, "strict": False}]},
    "schema": {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}},
    "picture": {
        "input": [
            {
                "role": "user",
                "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}],
            }
        ]
    },
}
MESSAGES: dict[str, Any] = {
    "text": lambda text: {"max_tokens": 100, "messages": [{"role": "user", "content": text}]},
    "tools": {"tools": [{"name": "look", "input_schema": SCHEMA}]},
    "schema": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    "picture": {
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                    }
                ],
            }
        ]
    },
}
GEMINI: dict[str, Any] = {
    "text": lambda text: {"contents": [{"role": "user", "parts": [{"text": text}]}]},
    "tools": {"tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": SCHEMA}]}]},
    "schema": {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}},
    "picture": {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}]}]},
}
#: No package compatible with the others has these response types; e2e/worker/bedrock_goldens.json has them.
CONVERSE: dict[str, Any] = {
    "text": lambda text: {"messages": [{"role": "user", "content": [{"text": text}]}]},
    "tools": {"toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": SCHEMA}}}]}},
    "schema": {
        "outputConfig": {
            "textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"schema": json.dumps(SCHEMA)}},
            }
        }
    },
    "picture": {
        "messages": [
            {"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": PNG}}}]},
        ]
    },
}
GENERATE = "/v1beta/models/m%2F1:generateContent"
STREAM = "/v1beta/models/m%2F1:streamGenerateContent?alt=sse"
PUBLISHERS = "/v1/projects/p/locations/europe-west1/publishers"
GOOGLE = f"{PUBLISHERS}/google/models/m%2F1"
CLAUDE = f"{PUBLISHERS}/anthropic/models/m%2F1"
#: For each dialect: path, path of streams, parts of requests, types of response and event.
DIALECTS: dict[str, tuple[str, str, dict[str, Any], Any, Any]] = {
    "chat": ("/v1/chat/completions", "/v1/chat/completions", CHAT, ChatCompletion, ChatCompletionChunk),
    "responses": ("/v1/responses", "/v1/responses", RESPONSES, Response, ResponseStreamEvent),
    "messages": ("/v1/messages", "/v1/messages", MESSAGES, Message, RawMessageStreamEvent),
    "gemini": (GENERATE, STREAM, GEMINI, GenerateContentResponse, GenerateContentResponse),
    "vertex_gemini": (
        f"{GOOGLE}:generateContent",
        f"{GOOGLE}:streamGenerateContent?alt=sse",
        GEMINI,
        GenerateContentResponse,
        GenerateContentResponse,
    ),
    "vertex_claude": (
        f"{CLAUDE}:rawPredict",
        f"{CLAUDE}:streamRawPredict",
        MESSAGES,
        Message,
        RawMessageStreamEvent,
    ),
}
KINDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "text": lambda asked: asked["text"]("hi there"),
    "short": lambda asked: asked["text"]("mock:tokens=1"),
    "one_call": lambda asked: asked["text"]("mock:calls=1") | asked["tools"],
    "parallel_calls": lambda asked: asked["text"]("mock:calls=3") | asked["tools"],
    "schema": lambda asked: asked["text"]("hi there") | asked["schema"],
    "picture": lambda asked: asked["text"]("hi") | asked["picture"],
}


def exchange(target: str, request: dict[str, Any]) -> Any:
    path = target.partition("?")[0]
    endpoint = endpoint_at(path) or mock_bedrock.endpoint(path) or mock_vertex.endpoint(path)
    assert endpoint is not None
    named = {} if "/model" in target else {"model": "m/1"}
    if "awPredict" in target:
        named = {"anthropic_version": "vertex-2023-10-16"}
    return endpoint(json.dumps(named | request).encode(), MockBehaviour(), 1, target)


def documents(events: list[bytes]) -> Iterator[str]:
    """Yields the events' data, except data that is no document of the API."""
    for event in events:
        lines = event.decode().splitlines()
        data = next(line.removeprefix("data: ") for line in lines if line.startswith("data: "))
        # No package has a type for the end of a stream or for a ping, because clients skip both.
        if data not in ("[DONE]", '{"type":"ping"}'):
            yield data


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_whole_answer_has_the_published_type(dialect: str, kind: str) -> None:
    target, _, asked, answer, _ = DIALECTS[dialect]
    TypeAdapter(answer).validate_json(exchange(target, KINDS[kind](asked)).completion())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_event_of_a_stream_has_the_published_type(dialect: str, kind: str) -> None:
    _, target, asked, _, event = DIALECTS[dialect]
    streamed = {} if "gemini" in dialect else {"stream": True}
    usage = {"stream_options": {"include_usage": True}} if dialect == "chat" else {}
    found = list(documents(exchange(target, KINDS[kind](asked) | streamed | usage).events()))
    assert len(found) > 1
    adapter: TypeAdapter[Any] = TypeAdapter(event)
    for document in found:
        adapter.validate_json(document)


def test_the_endpoints_without_streams_and_text_completions_have_the_published_types() -> None:
    for target, request, answer in (
        ("/v1/completions", {"prompt": "hi"}, Completion),
        ("/v1/embeddings", {"input": ["hi", "ho"]}, CreateEmbeddingResponse),
        ("/v1/moderations", {"input": "hi"}, ModerationCreateResponse),
        ("/v1/images/generations", {"prompt": "hi", "n": 2}, ImagesResponse),
        ("/v1/responses/input_tokens", {"input": "hi"}, InputTokenCountResponse),
        ("/v1/messages/count_tokens", MESSAGES["text"]("hi"), MessageTokensCount),
        (
            "/v1beta/models/m:batchEmbedContents",
            {"requests": [{"model": "models/m", "content": GEMINI["text"]("hi")["contents"][0]}]},
            EmbedContentResponse,
        ),
        ("/v1beta/models/m:countTokens", GEMINI["text"]("hi"), CountTokensResponse),
        (f"{GOOGLE}:countTokens", GEMINI["text"]("hi"), CountTokensResponse),
    ):
        TypeAdapter(answer).validate_json(exchange(target, request).completion())
    for document in documents(exchange("/v1/completions", {"prompt": "hi", "stream": True}).events()):
        event = json.loads(document)
        # Real chunks before the last have no finish reason, but the published type requires one.
        event["choices"][0]["finish_reason"] = event["choices"][0]["finish_reason"] or "stop"
        Completion.model_validate(event)


def test_every_event_of_a_stream_of_images_or_speech_has_the_published_type() -> None:
    image = {"prompt": "hi", "stream": True, "partial_images": 2}
    events = list(documents(exchange("/v1/images/generations", image).events()))
    assert len(events) == 3
    for document in events:
        TypeAdapter(ImageGenStreamEvent).validate_json(document)
    *deltas, done = map(
        json.loads, documents(exchange("/v1/audio/speech", {"input": "hi", "stream_format": "sse"}).events())
    )
    # openai has no types for these events, so the test follows the API reference.
    assert all(delta.keys() == {"type", "audio"} for delta in deltas)
    assert done["type"] == "speech.audio.done"
    assert done["usage"].keys() == {"input_tokens", "output_tokens", "total_tokens"}


def test_what_is_asked_for_is_found_in_the_words_of_each_dialect() -> None:
    requests = [(target, asked) for target, _, asked, _, _ in DIALECTS.values()]
    for target, asked in [*requests, ("/model/m%2F1/converse", CONVERSE)]:
        calls = exchange(target, KINDS["parallel_calls"](asked)).calls
        assert [(call.name, call.arguments) for call in calls] == [
            ("look", {"city": f"city-{number}"}) for number in (1, 2, 3)
        ]
        assert json.loads(exchange(target, KINDS["schema"](asked)).sample) == {"city": "sample", "days": 7}
        assert exchange(target, KINDS["picture"](asked)).pictures == ["image/png of 8 bytes"]
        assert exchange(target, KINDS["text"](asked)).chunks()[0] == "m/1:"


def test_an_invoked_model_says_in_frames_what_it_says_in_events() -> None:
    for kind in KINDS.values():
        asked = kind(MESSAGES)
        invoked = exchange(
            "/model/m%2F1/invoke-with-response-stream", asked | {"anthropic_version": "bedrock-2023-05-31"}
        )
        whole = exchange("/v1/messages", asked | {"stream": True})
        said = [json.loads(event.split(b"data: ", 1)[1]) for event in whole.events()]
        said[0]["message"]["id"] = invoked.id
        assert invoked.events() == [mock_bedrock.wrap_event(event) for event in said]


def test_vertex_serves_what_it_is_said_to_and_nothing_else() -> None:
    for path in (
        f"{GOOGLE}:embedContent",
        f"{GOOGLE}:rawPredict",
        f"{CLAUDE}:generateContent",
        f"{PUBLISHERS}/mistralai/models/m:rawPredict",
        f"{PUBLISHERS}/google/models/m/1:generateContent",
    ):
        assert mock_vertex.endpoint(path) is None
    count = f"{PUBLISHERS}/anthropic/models/count-tokens:rawPredict"
    counted = mock_vertex.endpoint(count)
    assert counted is not None
    request = {"model": "m", **MESSAGES["text"]("hi there")}
    MessageTokensCount.model_validate_json(
        counted(json.dumps(request).encode(), MockBehaviour(), 1, count).completion()
    )

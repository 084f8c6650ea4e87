"""Features of the official clients that test_clients.py does not test for all of them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from google import genai
from google.genai import errors, types
from proofgate.mock_google import EMBEDDING

from e2e.local_gateway import KEYS, MODEL, LocalGateway
from e2e.programs import PATIENCE

CLAUDE = "mock-claude"
GEMINI = "mock-gemini"
#: The gateway's name for a Gemini model.
RENAMED = "embeddings"
#: The gateway's name for an Azure deployment.
DEPLOYMENT = "azure"
HELLO: list[Any] = [{"role": "user", "content": "hello there"}]


@contextmanager
def gateway_before_all(folder: Path, **settings: Any) -> Iterator[LocalGateway]:
    """A gateway in front of a provider of each family."""
    gateway = LocalGateway(folder)
    try:
        gateway.start_upstream()
        gateway.settings = {
            "providers": [
                {"name": "mock", "type": "OpenAI", "baseURL": gateway.upstream_url},
                {"name": "anthropic", "type": "Anthropic", "baseURL": gateway.upstream_url},
                {"name": "gemini", "type": "Gemini", "baseURL": gateway.upstream_url},
                {
                    **{"name": "azure", "type": "AzureOpenAI", "baseURL": gateway.upstream_url},
                    **{"api": "Deployments", "apiVersion": "2024-10-21"},
                },
            ],
            "models": [
                {"name": MODEL, "provider": "mock"},
                {"name": CLAUDE, "provider": "anthropic"},
                {"name": GEMINI, "provider": "gemini"},
                {"name": RENAMED, "provider": "gemini", "upstreamModel": "gemini-embedding-001"},
                {"name": DEPLOYMENT, "provider": "azure", "upstreamModel": "my-gpt"},
            ],
            **settings,
        }
        gateway.write_configuration()
        gateway.start_worker()
        yield gateway
    finally:
        gateway.stop()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGateway]:
    with gateway_before_all(tmp_path_factory.mktemp("all")) as gateway:
        yield gateway


@pytest.fixture
def client(both: LocalGateway) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=both.base_url, api_key=KEYS["acme"], max_retries=0) as found:
        yield found


@pytest.fixture
def claude(both: LocalGateway) -> Iterator[anthropic.Anthropic]:
    base_url = both.base_url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=base_url, api_key=KEYS["acme"], max_retries=0) as found:
        yield found


@pytest.fixture
def google(both: LocalGateway) -> genai.Client:
    return google_client(both)


def google_client(gateway: LocalGateway) -> genai.Client:
    options = types.HttpOptions(base_url=gateway.base_url.removesuffix("/v1"))
    return genai.Client(api_key=KEYS["acme"], http_options=options)


def completion_of(gateway: LocalGateway, request_id: str | None) -> dict[str, Any]:
    found = [record for record in gateway.records() if record.get("id") == request_id]
    return next(record for record in found if record["kind"] == "completion")


def test_a_response_is_streamed_event_by_event(both: LocalGateway, client: openai.OpenAI) -> None:
    with client.responses.create(model=MODEL, input="hello there", stream=True) as stream:
        events = list(stream)
        request_id = stream.response.headers["x-request-id"]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed" and events[-1].response.output_text.startswith(MODEL)
    completion = completion_of(both, request_id)
    assert completion["outcome"] == "complete"
    assert completion["usage"] == {"prompt_tokens": 2, "completion_tokens": 8}


def test_embeddings_completions_and_moderations_are_answered(client: openai.OpenAI) -> None:
    vectors = client.embeddings.create(model=MODEL, input=["one", "two"], encoding_format="float")
    assert [vector.index for vector in vectors.data] == [0, 1] and vectors.usage.prompt_tokens == 2
    assert client.completions.create(model=MODEL, prompt="one").choices[0].text.startswith(MODEL)
    chunks = list(client.completions.create(model=MODEL, prompt="one", stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks).startswith(MODEL)
    assert not client.moderations.create(model=MODEL, input="one").results[0].flagged


def test_a_message_is_streamed_event_by_event(both: LocalGateway, claude: anthropic.Anthropic) -> None:
    with claude.messages.stream(model=CLAUDE, max_tokens=100, messages=HELLO) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
        request_id = stream.response.headers["x-request-id"]
    assert text.startswith(f"{CLAUDE}: token1") and message.stop_reason == "end_turn"
    completion = completion_of(both, request_id)
    assert completion["outcome"] == "complete"
    assert completion["usage"] == {"prompt_tokens": 2, "completion_tokens": 8}


def test_tokens_of_a_message_are_counted(claude: anthropic.Anthropic) -> None:
    assert claude.messages.count_tokens(model=CLAUDE, messages=HELLO).input_tokens == 2


def test_the_anthropic_client_reads_the_gateways_errors(claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as raised:
        claude.messages.create(model="nobody's", max_tokens=1, messages=HELLO)
    assert raised.value.body["error"]["code"] == "model_not_found"  # type: ignore[index]
    with pytest.raises(anthropic.AuthenticationError):
        claude.with_options(api_key="wrong-key-0123456789abcdef").messages.create(
            model=CLAUDE, max_tokens=1, messages=HELLO
        )
    with pytest.raises(anthropic.PermissionDeniedError):
        claude.messages.create(
            model=CLAUDE, max_tokens=1, messages=HELLO, tools=[{"type": "web_search_20250305", "name": "web_search"}]
        )


def test_the_anthropic_client_lists_the_models(claude: anthropic.Anthropic) -> None:
    assert {model.id for model in claude.models.list()} == {MODEL, CLAUDE, GEMINI, RENAMED, DEPLOYMENT}


def test_googles_client_counts_tokens_and_reads_the_models(google: genai.Client) -> None:
    assert google.models.count_tokens(model=GEMINI, contents="hello there").total_tokens == 2
    listed = {model.name: model.supported_actions for model in google.models.list(config={"page_size": 50})}
    assert listed == {
        f"models/{MODEL}": [],
        f"models/{CLAUDE}": [],
        f"models/{DEPLOYMENT}": [],
        f"models/{RENAMED}": ["generateContent", "countTokens", "embedContent"],
        f"models/{GEMINI}": ["generateContent", "countTokens", "embedContent"],
    }
    assert google.models.get(model=GEMINI).display_name == GEMINI


def test_googles_client_embeds_texts_by_a_model_that_has_another_name_there(
    both: LocalGateway, google: genai.Client
) -> None:
    config = types.EmbedContentConfig(task_type="RETRIEVAL_QUERY", output_dimensionality=4)
    answer = google.models.embed_content(model=RENAMED, contents=["hello there", "hi"], config=config)
    assert answer.embeddings is not None
    assert [vector.values for vector in answer.embeddings] == [EMBEDDING, EMBEDDING]
    completion = both.records()[-1]
    assert completion["usage"] == {"prompt_tokens": 3, "completion_tokens": 0}


def test_openais_client_embeds_texts_by_gemini(client: openai.OpenAI) -> None:
    # The client requests base64 by default, and decodes it.
    answer = client.embeddings.create(model=RENAMED, input=["hello there", "hi"], dimensions=4)
    numbers = client.embeddings.create(model=RENAMED, input="hi", encoding_format="float")
    for vector in (*answer.data, *numbers.data):
        assert vector.embedding == pytest.approx(EMBEDDING, abs=1e-7)
    assert (answer.model, answer.usage.prompt_tokens) == (RENAMED, 3)
    with pytest.raises(openai.BadRequestError) as raised:
        client.embeddings.create(model=RENAMED, input=[[1, 2]])
    assert (raised.value.code, raised.value.param) == ("not_translatable", "input[0]")


def test_images_are_generated_whole_and_in_a_stream(both: LocalGateway, client: openai.OpenAI) -> None:
    # Four images of 1.5 megabytes: much more than a buffer, less than `limits.bodyBytes`.
    images = client.images.generate(model=MODEL, prompt="a cat mock:tokens=18000", n=4)
    assert images.data is not None and images.usage is not None
    assert [len(base64.b64decode(image.b64_json or "")) for image in images.data] == [8 + 64 * 18_000] * 4
    assert images.usage.output_tokens == 4 * 18_000
    with client.images.generate(model=MODEL, prompt="a cat mock:tokens=18000", stream=True, partial_images=2) as stream:
        events = list(stream)
        request_id = stream.response.headers["x-request-id"]
    assert [event.type.rpartition(".")[2] for event in events] == ["partial_image", "partial_image", "completed"]
    completion = completion_of(both, request_id)
    assert completion["outcome"] == "complete"
    assert completion["usage"] == {"prompt_tokens": 3, "completion_tokens": 18_000}
    with pytest.raises(openai.BadRequestError) as raised:
        client.images.generate(prompt="a cat")
    assert raised.value.code == "missing_model"


def test_speech_is_a_recording_or_a_stream_of_events(both: LocalGateway, client: openai.OpenAI) -> None:
    spoken: Any = client.audio.speech.create(model=MODEL, voice="alloy", input="hello there mock:tokens=5000")
    assert spoken.content == (b"\xff\xfb\x90\x64" + bytes(64)) * 5000
    assert spoken.response.headers["content-type"] == "audio/mpeg"
    with client.audio.speech.with_streaming_response.create(
        model=MODEL, voice="alloy", input="hello there", stream_format="sse"
    ) as streamed:
        assert b"speech.audio.done" in streamed.read()
        request_id = streamed.headers["x-request-id"]
    completion = completion_of(both, request_id)
    assert completion["usage"] == {"prompt_tokens": 2, "completion_tokens": 8}


def test_azures_client_names_the_model_in_the_path(both: LocalGateway) -> None:
    endpoint = both.base_url.removesuffix("/v1")
    with openai.AzureOpenAI(
        azure_endpoint=endpoint, api_key=KEYS["acme"], api_version="2024-10-21", max_retries=0
    ) as client:
        assert client.chat.completions.create(model=MODEL, messages=HELLO).choices[0].message.content
        chunks = list(client.chat.completions.create(model=MODEL, messages=HELLO, stream=True))
        assert chunks[-1].choices[0].finish_reason == "stop"
        assert client.embeddings.create(model=MODEL, input="hi").data[0].embedding
        assert client.images.generate(model=MODEL, prompt="hi").data
        assert client.responses.create(model=MODEL, input="hi").output_text.startswith(MODEL)
        assert {model.id for model in client.models.list()} >= {MODEL, CLAUDE}
        with pytest.raises(openai.NotFoundError) as raised:
            client.chat.completions.create(model="nobody's", messages=HELLO)
        assert raised.value.code == "model_not_found"


def test_a_deployment_of_azures_stands_in_the_path(both: LocalGateway, client: openai.OpenAI) -> None:
    assert client.chat.completions.create(model=DEPLOYMENT, messages=HELLO).choices[0].message.content
    chunks = list(client.chat.completions.create(model=DEPLOYMENT, messages=HELLO, stream=True))
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert client.embeddings.create(model=DEPLOYMENT, input="hi").data[0].embedding
    assert client.responses.create(model=DEPLOYMENT, input="hi").output_text


def test_googles_client_is_told_what_is_not_served(google: genai.Client) -> None:
    kept = types.Part.from_uri(
        file_uri="https://generativelanguage.googleapis.com/v1beta/files/1", mime_type="image/png"
    )
    generate: Any = google.models.generate_content
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: generate(model=GEMINI, contents=[kept]), "UNSERVED_FIELD"),
        (
            lambda: generate(model=GEMINI, contents="hi", config={"cached_content": "cachedContents/1"}),
            "UNSERVED_FIELD",
        ),
        (
            lambda: generate(model=GEMINI, contents="hi", config={"tools": [{"google_search": {}}]}),
            "HOSTED_TOOL_NOT_ALLOWED",
        ),
        (
            lambda: generate(model=GEMINI, contents="hi", config={"tools": [{"code_execution": {}}]}),
            "HOSTED_TOOL_NOT_ALLOWED",
        ),
        (
            lambda: generate(model=GEMINI, contents="hi", config={"tools": [{"url_context": {}}]}),
            "HOSTED_TOOL_NOT_ALLOWED",
        ),
    ]
    for asked, reason in refused:
        with pytest.raises(errors.ClientError) as raised:
            asked()
        assert raised.value.details["error"]["details"][0]["reason"] == reason


def test_a_key_in_the_url_is_refused_and_stands_in_no_record_or_log(both: LocalGateway) -> None:
    key = KEYS["acme"]
    url = f"{both.base_url.removesuffix('/v1')}/v1beta/models/{GEMINI}:generateContent?key={key}"
    for headers in ({}, {"x-goog-api-key": key}):
        answer = httpx.post(url, json={"contents": []}, headers=headers, timeout=PATIENCE)
        assert (answer.status_code, answer.json()["error"]["details"][0]["reason"]) == (400, "KEY_IN_QUERY")
        assert key not in answer.text
    for file in (path for path in both.folder.rglob("*") if path.is_file()):
        with suppress(FileNotFoundError):  # a running worker may replace a checkpoint during this loop
            assert key.encode() not in file.read_bytes(), file


def test_a_rule_reads_the_prompts_of_every_dialect(tmp_path: Path) -> None:
    rule = {"id": "name", "reason": "A name.", "target": "Request", "literals": ["johndoe"], "action": "Block"}
    with gateway_before_all(tmp_path, policy={"mode": "Enforce", "rules": [rule]}) as gateway:
        base_url = gateway.base_url.removesuffix("/v1")
        claude = anthropic.Anthropic(base_url=base_url, api_key=KEYS["acme"], max_retries=0)
        client = openai.OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"], max_retries=0)
        hidden: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "say johndoe"}]}]
        for denied in (
            lambda: client.responses.create(model=MODEL, input=hidden),
            lambda: client.responses.create(model=MODEL, input="hi", instructions="johndoe"),
            lambda: client.embeddings.create(model=MODEL, input=["a", "johndoe"]),
            lambda: client.completions.create(model=MODEL, prompt="johndoe"),
            lambda: client.moderations.create(model=MODEL, input="johndoe"),
        ):
            with pytest.raises(openai.PermissionDeniedError):
                denied()
        plain: list[Any] = [{"role": "user", "content": "johndoe"}]
        for said in (hidden, plain):
            with pytest.raises(anthropic.PermissionDeniedError):
                claude.messages.create(model=CLAUDE, max_tokens=9, messages=said)
        with pytest.raises(anthropic.PermissionDeniedError):
            claude.messages.count_tokens(model=CLAUDE, messages=HELLO, system="johndoe")
        google = google_client(gateway)
        generate: Any = google.models.generate_content
        tool = {"function_declarations": [{"name": "look", "description": "johndoe"}]}
        result = types.Part.from_function_response(name="look", response={"found": "johndoe"})
        for contents, config in (
            ("johndoe", {}),
            ("hi", {"system_instruction": "johndoe"}),
            ("hi", {"tools": [tool]}),
            (
                "hi",
                {"response_mime_type": "application/json", "response_schema": {"type": "STRING", "enum": ["johndoe"]}},
            ),
            ([result], {}),
        ):
            with pytest.raises(errors.ClientError) as raised:
                generate(model=GEMINI, contents=contents, config=config)
            assert raised.value.code == 403
        assert gateway.upstream_stats()["started"] == 0

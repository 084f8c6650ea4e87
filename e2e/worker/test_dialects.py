"""What the official clients use besides what test_clients.py asks of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from google import genai
from google.genai import errors, types

from e2e.local_gateway import KEYS, MODEL, LocalGateway

CLAUDE = "mock-claude"
GEMINI = "mock-gemini"
HELLO: list[Any] = [{"role": "user", "content": "hello there"}]


@contextmanager
def gateway_before_all(folder: Path, **settings: Any) -> Iterator[LocalGateway]:
    """A gateway before a provider of each family."""
    gateway = LocalGateway(folder)
    try:
        gateway.start_upstream()
        gateway.settings = {
            "providers": [
                {"name": "mock", "type": "OpenAI", "baseURL": gateway.upstream_url},
                {"name": "anthropic", "type": "Anthropic", "baseURL": gateway.upstream_url},
                {"name": "gemini", "type": "Gemini", "baseURL": gateway.upstream_url},
            ],
            "models": [
                {"name": MODEL, "provider": "mock"},
                {"name": CLAUDE, "provider": "anthropic"},
                {"name": GEMINI, "provider": "gemini"},
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
    with pytest.raises(anthropic.BadRequestError):
        claude.messages.create(
            model=CLAUDE, max_tokens=1, messages=HELLO, tools=[{"type": "web_search_20250305", "name": "web_search"}]
        )


def test_the_anthropic_client_lists_the_models(claude: anthropic.Anthropic) -> None:
    assert {model.id for model in claude.models.list()} == {MODEL, CLAUDE, GEMINI}


def test_googles_client_counts_tokens_and_reads_the_models(google: genai.Client) -> None:
    assert google.models.count_tokens(model=GEMINI, contents="hello there").total_tokens == 2
    listed = {model.name: model.supported_actions for model in google.models.list(config={"page_size": 50})}
    assert listed == {
        f"models/{MODEL}": [],
        f"models/{CLAUDE}": [],
        f"models/{GEMINI}": ["generateContent", "countTokens"],
    }
    assert google.models.get(model=GEMINI).display_name == GEMINI


def test_googles_client_is_told_what_is_not_served(google: genai.Client) -> None:
    kept = types.Part.from_uri(
        file_uri="https://generativelanguage.googleapis.com/v1beta/files/1", mime_type="image/png"
    )
    generate: Any = google.models.generate_content
    for asked, reason in (
        (lambda: generate(model=GEMINI, contents=[kept]), "UNSERVED_FIELD"),
        (
            lambda: generate(model=GEMINI, contents="hi", config={"cached_content": "cachedContents/1"}),
            "UNSERVED_FIELD",
        ),
        (lambda: generate(model=GEMINI, contents="hi", config={"tools": [{"google_search": {}}]}), "UNSERVED_TOOL"),
        (lambda: generate(model=GEMINI, contents="hi", config={"tools": [{"code_execution": {}}]}), "UNSERVED_TOOL"),
        (lambda: generate(model=GEMINI, contents="hi", config={"tools": [{"url_context": {}}]}), "UNSERVED_TOOL"),
        (lambda: google.models.embed_content(model=GEMINI, contents=["hi"]), "UNKNOWN_ENDPOINT"),
    ):
        with pytest.raises(errors.ClientError) as raised:
            asked()
        assert raised.value.details["error"]["details"][0]["reason"] == reason


def test_a_key_in_the_url_is_refused_and_stands_in_no_record_or_log(both: LocalGateway) -> None:
    key = KEYS["acme"]
    url = f"{both.base_url.removesuffix('/v1')}/v1beta/models/{GEMINI}:generateContent?key={key}"
    for headers in ({}, {"x-goog-api-key": key}):
        answer = httpx.post(url, json={"contents": []}, headers=headers)
        assert (answer.status_code, answer.json()["error"]["details"][0]["reason"]) == (400, "KEY_IN_QUERY")
        assert key not in answer.text
    for file in (path for path in both.folder.rglob("*") if path.is_file()):
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

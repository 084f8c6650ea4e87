"""Google's Vertex AI behind the official clients of Google, OpenAI and Anthropic, with tokens that expire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from e2e.local_gateway import KEYS, LocalGateway
from e2e.programs import PATIENCE, wait_until
from e2e.vertex_upstream import VertexUpstream, vertex_upstream

GEMINI, CLAUDE = "gemini", "claude"
#: The remaining lifetime at a renewal is many times the duration of a renewal, even on a busy machine.
SHORT_SECONDS = 60
HELLO: list[Any] = [{"role": "user", "content": "hello there"}]


def gateway_at(folder: Path, upstream: VertexUpstream) -> LocalGateway:
    gateway = LocalGateway(folder)
    (folder / "account.json").write_text(upstream.key_file())
    provider = {
        "name": "vertex",
        "type": "VertexAI",
        "project": "my-project",
        "location": "europe-west1",
        "baseURL": f"{upstream.url}/v1",
        "auth": {"type": "GCPServiceAccountKey", "serviceAccountKeyFile": "account.json"},
    }
    names = {GEMINI: "gemini-3-pro", CLAUDE: "claude-sonnet-4-5@20250929"}
    models = [{"name": name, "provider": "vertex", "upstreamModel": model} for name, model in names.items()]
    gateway.settings = {"providers": [provider], "models": models}
    gateway.write_configuration()
    return gateway


def chat(gateway: LocalGateway) -> openai.types.chat.ChatCompletion:
    with openai.OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"], max_retries=0) as client:
        return client.chat.completions.create(model=GEMINI, messages=HELLO)


def assert_tells_no_secret(gateway: LocalGateway, upstream: VertexUpstream) -> None:
    assert gateway.worker is not None
    told = gateway.worker.log.read_text() + gateway.admin_text("/status") + gateway.admin_text("/metrics")
    told += json.dumps(gateway.records())
    secrets = [*upstream.tokens, *json.loads(upstream.key_file())["private_key"].splitlines()[1:-1]]
    assert not any(secret in told for secret in secrets)


@pytest.fixture(scope="module")
def upstream() -> Iterator[VertexUpstream]:
    with vertex_upstream() as found:
        yield found


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, upstream: VertexUpstream) -> Iterator[LocalGateway]:
    gateway = gateway_at(tmp_path_factory.mktemp("vertex"), upstream)
    try:
        gateway.start_worker()
        yield gateway
    finally:
        gateway.stop()


def test_googles_client_reaches_gemini(gateway: LocalGateway) -> None:
    options = types.HttpOptions(base_url=gateway.base_url.removesuffix("/v1"))
    client = genai.Client(api_key=KEYS["acme"], http_options=options)
    whole = client.models.generate_content(model=GEMINI, contents="hello there")
    assert whole.text
    streamed = [
        chunk.text or "" for chunk in client.models.generate_content_stream(model=GEMINI, contents="hello there")
    ]
    assert "".join(streamed) == whole.text
    assert client.models.count_tokens(model=GEMINI, contents="hello there").total_tokens


@pytest.mark.parametrize("model", [GEMINI, CLAUDE])
def test_openais_client_reaches_the_models_of_both_publishers(gateway: LocalGateway, model: str) -> None:
    with openai.OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"], max_retries=0) as client:
        whole = client.chat.completions.create(model=model, messages=HELLO).choices[0].message.content
        stream = client.chat.completions.create(model=model, messages=HELLO, stream=True)
        pieces = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
    assert whole
    assert "".join(pieces) == whole


def test_anthropics_client_reaches_claude(gateway: LocalGateway, upstream: VertexUpstream) -> None:
    base_url = gateway.base_url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=base_url, api_key=KEYS["acme"], max_retries=0) as client:
        whole = client.messages.create(model=CLAUDE, max_tokens=50, messages=HELLO)
        with client.messages.stream(model=CLAUDE, max_tokens=50, messages=HELLO) as stream:
            streamed = stream.get_final_message()
        counted = client.messages.count_tokens(model=CLAUDE, messages=HELLO)
    assert whole.content[0].type == streamed.content[0].type == "text"
    assert whole.content[0].text == streamed.content[0].text
    assert counted.input_tokens
    assert upstream.requests[-1][0].endswith("/anthropic/models/count-tokens:rawPredict")


def test_nothing_tells_the_key_or_a_token(gateway: LocalGateway, upstream: VertexUpstream) -> None:
    assert chat(gateway).choices
    assert_tells_no_secret(gateway, upstream)


def test_a_token_is_replaced_before_its_end_and_no_request_fails(tmp_path: Path) -> None:
    with vertex_upstream() as upstream:
        upstream.lifetime_seconds = SHORT_SECONDS
        gateway = gateway_at(tmp_path, upstream)
        try:
            gateway.start_worker()
            wait_until(lambda: chat(gateway) and len(upstream.used) >= 2, PATIENCE, "requests carry a later token")
            assert {status for _, status in upstream.requests} == {200}
        finally:
            gateway.stop()


def test_without_a_token_requests_are_refused_until_one_comes(tmp_path: Path) -> None:
    with vertex_upstream() as upstream:
        upstream.is_down = True
        gateway = gateway_at(tmp_path, upstream)
        try:
            gateway.start_worker()
            with pytest.raises(openai.InternalServerError) as refused:
                chat(gateway)
            assert (refused.value.status_code, refused.value.code) == (503, "provider_key_missing")
            wait_until(lambda: gateway.status()["credentials"][0]["error"], PATIENCE, "the failure is reported")
            upstream.is_down = False
            wait_until(lambda: gateway.status()["credentials"][0]["error"] is None, PATIENCE, "a token comes")
            assert chat(gateway).choices
            assert_tells_no_secret(gateway, upstream)
        finally:
            gateway.stop()

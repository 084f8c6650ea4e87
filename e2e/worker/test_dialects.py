"""The endpoints besides chat completions, as the official clients use them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from e2e.local_gateway import KEYS, MODEL, LocalGateway, wait_until

CLAUDE = "mock-claude"
HELLO: list[Any] = [{"role": "user", "content": "hello there"}]


@contextmanager
def gateway_before_both(folder: Path, **settings: Any) -> Iterator[LocalGateway]:
    """A gateway before a provider of each family."""
    gateway = LocalGateway(folder)
    try:
        gateway.start_upstream()
        gateway.settings = {
            "providers": [
                {"name": "mock", "type": "OpenAI", "baseURL": gateway.upstream_url},
                {"name": "anthropic", "type": "Anthropic", "baseURL": gateway.upstream_url},
            ],
            "models": [{"name": MODEL, "provider": "mock"}, {"name": CLAUDE, "provider": "anthropic"}],
            **settings,
        }
        gateway.write_configuration()
        gateway.start_worker()
        yield gateway
    finally:
        gateway.stop()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGateway]:
    with gateway_before_both(tmp_path_factory.mktemp("both")) as gateway:
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


def completion_of(gateway: LocalGateway, request_id: str | None) -> dict[str, Any]:
    found = [record for record in gateway.records() if record.get("id") == request_id]
    return next(record for record in found if record["kind"] == "completion")


def test_a_response_is_whole_and_recorded_with_its_usage(both: LocalGateway, client: openai.OpenAI) -> None:
    raw = client.responses.with_raw_response.create(model=MODEL, input="hello there")
    response = raw.parse()
    assert response.output_text.startswith(f"{MODEL}: token1") and response.status == "completed"
    assert completion_of(both, raw.headers["x-request-id"])["usage"] == {"prompt_tokens": 2, "completion_tokens": 8}


def test_a_response_is_streamed_event_by_event(both: LocalGateway, client: openai.OpenAI) -> None:
    with client.responses.create(model=MODEL, input="hello there", stream=True) as stream:
        events = list(stream)
        request_id = stream.response.headers["x-request-id"]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed" and events[-1].response.output_text.startswith(MODEL)
    completion = completion_of(both, request_id)
    assert completion["outcome"] == "complete"
    assert completion["usage"] == {"prompt_tokens": 2, "completion_tokens": 8}


def test_a_response_that_is_cut_off_raises_in_the_client(both: LocalGateway, client: openai.OpenAI) -> None:
    with (
        pytest.raises(openai.APIError),
        client.responses.create(model=MODEL, input="mock:cut=6", stream=True) as stream,
    ):
        for _ in stream:
            pass


def test_embeddings_completions_and_moderations_are_answered(client: openai.OpenAI) -> None:
    vectors = client.embeddings.create(model=MODEL, input=["one", "two"], encoding_format="float")
    assert [vector.index for vector in vectors.data] == [0, 1] and vectors.usage.prompt_tokens == 2
    assert client.completions.create(model=MODEL, prompt="one").choices[0].text.startswith(MODEL)
    chunks = list(client.completions.create(model=MODEL, prompt="one", stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks).startswith(MODEL)
    assert not client.moderations.create(model=MODEL, input="one").results[0].flagged


def test_a_message_is_whole_and_recorded_with_its_usage(both: LocalGateway, claude: anthropic.Anthropic) -> None:
    raw = claude.messages.with_raw_response.create(model=CLAUDE, max_tokens=100, messages=HELLO)
    message = raw.parse()
    assert message.content[0].type == "text" and message.content[0].text.startswith(CLAUDE)
    assert message.stop_reason == "end_turn" and message.usage.output_tokens == 8
    assert completion_of(both, raw.headers["x-request-id"])["usage"] == {"prompt_tokens": 2, "completion_tokens": 8}


def test_a_message_is_streamed_event_by_event(both: LocalGateway, claude: anthropic.Anthropic) -> None:
    with claude.messages.stream(model=CLAUDE, max_tokens=100, messages=HELLO) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
        request_id = stream.response.headers["x-request-id"]
    assert text.startswith(f"{CLAUDE}: token1") and message.stop_reason == "end_turn"
    completion = completion_of(both, request_id)
    assert completion["outcome"] == "complete"
    assert completion["usage"] == {"prompt_tokens": 2, "completion_tokens": 8}


def test_a_message_that_is_cut_off_raises_in_the_client(both: LocalGateway, claude: anthropic.Anthropic) -> None:
    # By itself the client takes a stream without its end for a whole answer.
    cut: list[Any] = [{"role": "user", "content": "mock:cut=5"}]
    with (
        pytest.raises(anthropic.APIStatusError) as raised,
        claude.messages.stream(model=CLAUDE, max_tokens=100, messages=cut) as stream,
    ):
        stream.get_final_message()
    assert "before the answer was whole" in str(raised.value) or "broke the connection" in str(raised.value)


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
    assert {model.id for model in claude.models.list()} == {MODEL, CLAUDE}


def test_the_openai_client_reaches_a_provider_of_anthropics_api(both: LocalGateway, client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(model=CLAUDE, messages=HELLO)
    completion = raw.parse()
    assert (completion.choices[0].message.content or "").startswith("mock-claude: token1")
    assert completion.model == CLAUDE and completion.choices[0].finish_reason == "stop"
    assert completion_of(both, raw.headers["x-request-id"])["usage"] == {"prompt_tokens": 2, "completion_tokens": 8}
    options: Any = {"include_usage": True}
    chunks = list(client.chat.completions.create(model=CLAUDE, messages=HELLO, stream=True, stream_options=options))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text.startswith("mock-claude: token1")
    assert chunks[-1].usage is not None and chunks[-1].usage.total_tokens == 10


def test_the_anthropic_client_reaches_a_provider_of_openais_api(
    both: LocalGateway, claude: anthropic.Anthropic
) -> None:
    raw = claude.messages.with_raw_response.create(model=MODEL, max_tokens=100, messages=HELLO)
    message = raw.parse()
    assert message.content[0].type == "text" and message.content[0].text.startswith(f"{MODEL}: token1")
    assert message.model == MODEL and message.stop_reason == "end_turn" and message.usage.output_tokens == 8
    assert completion_of(both, raw.headers["x-request-id"])["usage"] == {"prompt_tokens": 2, "completion_tokens": 8}
    with claude.messages.stream(model=MODEL, max_tokens=5, messages=HELLO) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text.startswith(f"{MODEL}: token1") and final.stop_reason == "max_tokens"
    assert final.usage.input_tokens == 2 and final.usage.output_tokens == 5


def test_a_translated_stream_that_is_cut_off_raises_in_either_client(
    client: openai.OpenAI, claude: anthropic.Anthropic
) -> None:
    cut: list[Any] = [{"role": "user", "content": "mock:cut=5"}]
    with pytest.raises(openai.APIError):
        list(client.chat.completions.create(model=CLAUDE, messages=cut, stream=True))
    with pytest.raises(anthropic.APIError), claude.messages.stream(model=MODEL, max_tokens=9, messages=cut) as stream:
        stream.get_final_message()


@pytest.mark.parametrize("model", [CLAUDE, MODEL])
def test_a_client_that_leaves_a_stream_of_messages_cancels_its_upstream_and_is_recorded(
    both: LocalGateway, claude: anthropic.Anthropic, model: str
) -> None:
    before = both.upstream_stats()["client_disconnects"]
    stalls: list[Any] = [{"role": "user", "content": "mock:stall=4"}]
    stream = claude.messages.create(model=model, max_tokens=9, messages=stalls, stream=True)
    request_id = stream.response.headers["x-request-id"]
    assert next(iter(stream)).type == "message_start"
    stream.close()
    wait_until(lambda: both.upstream_stats()["client_disconnects"] > before, 10, "the upstream is cancelled")

    def kinds() -> list[str]:
        return [record["kind"] for record in both.records() if record.get("id") == request_id]

    wait_until(lambda: "completion" in kinds(), 10, "the exchange is completed")
    assert completion_of(both, request_id)["outcome"] == "client_disconnect"


def test_a_rule_reads_the_prompts_of_every_dialect(tmp_path: Path) -> None:
    rule = {"id": "name", "reason": "A name.", "target": "Request", "literals": ["johndoe"], "action": "Block"}
    with gateway_before_both(tmp_path, policy={"mode": "Enforce", "rules": [rule]}) as gateway:
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
        assert gateway.upstream_stats()["started"] == 0

"""The mock upstream, mostly through the official OpenAI client, whose expectations it must meet."""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import socket
import time
from collections.abc import Iterator
from typing import Any

import anthropic
import google.oauth2.credentials
import httpx
import openai
import pytest
from conftest import HTTP, PATIENCE_SECONDS, eventually, serving
from google import genai
from worker_process import Process

from proofgate.mock_answers import MockBehaviour
from proofgate.mock_upstream import MockUpstream, UpstreamOptions

API_KEY = "sk-upstream"


class Mock:
    """A running mock with an OpenAI client that does not retry."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = openai.OpenAI(
            base_url=f"{url}/v1",
            api_key=API_KEY,
            max_retries=0,
            http_client=openai.DefaultHttpxClient(trust_env=False, verify=False),
        )

    def ask(self, content: str, model: str = "mock", **options: Any) -> Any:
        messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": content}]
        create: Any = self.client.chat.completions.create
        return create(model=model, messages=messages, **options)

    def stats(self) -> dict[str, Any]:
        stats: dict[str, Any] = HTTP.get(f"{self.url}/mock/stats").json()
        return stats


def connected(mock: Mock) -> socket.socket:
    url = httpx.URL(mock.url)
    return socket.create_connection((url.host, url.port or 0), timeout=PATIENCE_SECONDS)


@contextlib.contextmanager
def mock_with(**options: Any) -> Iterator[Mock]:
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    with serving(MockUpstream(UpstreamOptions(**options))) as url:
        mock = Mock(url)
        with mock.client:
            yield mock


@pytest.fixture
def mock() -> Iterator[Mock]:
    with mock_with(api_key=API_KEY) as mock:
        yield mock


def test_a_plain_answer_names_the_model_and_counts_tokens(mock: Mock) -> None:
    completion = mock.ask("say mock:tokens=3")
    assert completion.choices[0].message.content == "mock: token1 token2"
    assert completion.choices[0].finish_reason == "stop"
    assert completion.model == "mock"
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (4, 3, 7)


def test_the_same_request_gets_the_same_answer(mock: Mock) -> None:
    first, second = mock.ask("hello"), mock.ask("hello")
    assert first.model_copy(update={"id": second.id}) == second


def test_a_stream_says_what_the_plain_answer_says(mock: Mock) -> None:
    plain = mock.ask("hello").choices[0].message.content
    with mock.ask("hello", stream=True) as stream:
        chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == plain
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks[-2:]] == [None, "stop"]
    assert all(chunk.usage is None for chunk in chunks)


def test_a_stream_ends_with_usage_when_asked_for(mock: Mock) -> None:
    with mock.ask("hello mock:tokens=5", stream=True, stream_options={"include_usage": True}) as stream:
        chunks = list(stream)
    assert chunks[-1].choices == []
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (4, 5)
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_a_stream_ends_with_the_end_mark(mock: Mock) -> None:
    body = {"model": "mock", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
    response = HTTP.post(
        f"{mock.url}/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {API_KEY}"}
    )
    assert response.headers["content-type"] == "text/event-stream"
    events = response.text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    assert all(json.loads(event.removeprefix("data: ")) for event in events[:-2])


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_token_limit_shortens_the_answer(mock: Mock, name: str) -> None:
    limit: dict[str, Any] = {name: 2}
    completion = mock.ask("hello", **limit)
    assert completion.choices[0].message.content == "mock: token1"
    assert completion.choices[0].finish_reason == "length"
    assert completion.usage.completion_tokens == 2


def test_text_parts_are_read_like_text(mock: Mock) -> None:
    create: Any = mock.client.chat.completions.create
    parts = [{"type": "text", "text": "two words"}, {"type": "text", "text": "mock:tokens=1"}]
    completion = create(model="mock", messages=[{"role": "user", "content": parts}])
    assert completion.usage.prompt_tokens == 3
    assert completion.choices[0].message.content == "mock:"


def test_a_wrong_key_is_unauthorized(mock: Mock) -> None:
    with pytest.raises(openai.AuthenticationError):
        mock.client.with_options(api_key="sk-other").chat.completions.create(model="mock", messages=[])
    assert mock.stats()["unauthorized"] == 1


def test_any_key_will_do_when_none_is_set() -> None:
    with mock_with() as mock:
        assert mock.ask("hello").choices


def test_only_the_given_models_exist() -> None:
    with mock_with(models=("one", "two")) as mock:
        assert [model.id for model in mock.client.models.list()] == ["one", "two"]
        assert mock.ask("hello", model="two").model == "two"
        with pytest.raises(openai.NotFoundError):
            mock.ask("hello", model="three")


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
        (418, openai.APIStatusError),
    ],
)
def test_a_status_is_failed_with_on_request(
    mock: Mock, status: int, error: type[openai.APIStatusError]
) -> None:
    with pytest.raises(error) as caught:
        mock.ask(f"mock:status={status}")
    assert caught.value.status_code == status
    assert mock.stats()["failed"] == 1


def test_latency_comes_before_the_answer(mock: Mock) -> None:
    begun = time.monotonic()
    mock.ask("mock:latency=200")
    assert time.monotonic() - begun >= 0.199, "timers count whole milliseconds"


def test_a_stream_is_paced_and_the_fast_model_is_not() -> None:
    with mock_with(behaviour=MockBehaviour(latency=0.1, tokens=5, interval=0.04)) as mock:
        begun = time.monotonic()
        with mock.ask("hello", stream=True) as stream:
            assert len(list(stream)) == 7
        assert time.monotonic() - begun >= 0.299, "timers count whole milliseconds"
        completion = mock.ask("hello", model="mock-fast")
        assert completion.usage.completion_tokens == 5


def test_the_overloaded_model_turns_every_request_away(mock: Mock) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        mock.ask("hello", model="mock-overloaded")
    assert caught.value.status_code == 503


def test_a_cut_stream_ends_without_its_end(mock: Mock) -> None:
    received = []
    with pytest.raises(openai.APIConnectionError), mock.ask("mock:cut=3", stream=True) as stream:
        received.extend(stream)
    assert len(received) == 3
    assert mock.stats()["failed"] == 1


def test_a_cut_answer_is_shorter_than_announced(mock: Mock) -> None:
    with pytest.raises(openai.APIConnectionError):
        mock.ask("mock:cut=1")


def test_a_stalled_stream_falls_silent_until_the_client_leaves(mock: Mock) -> None:
    asked = {"model": "mock", "stream": True, "messages": [{"role": "user", "content": "mock:stall=2"}]}
    body, told = json.dumps(asked).encode(), b""
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: mock\r\nauthorization: Bearer {API_KEY}\r\n"
    with connected(mock) as connection:
        connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        while told.count(b"\n\n\r\n") < 2:
            told += connection.recv(1 << 16)
        connection.settimeout(0.1)
        with pytest.raises(TimeoutError):
            connection.recv(1)
    assert eventually(lambda: mock.stats()["client_disconnects"] == 1)


def test_a_hanging_request_is_counted_when_the_client_leaves(mock: Mock) -> None:
    with pytest.raises(openai.APITimeoutError):
        mock.client.with_options(timeout=openai.Timeout(PATIENCE_SECONDS, read=0.1)).chat.completions.create(
            model="mock", messages=[{"role": "user", "content": "mock:hang"}]
        )
    assert eventually(lambda: mock.stats()["client_disconnects"] == 1)
    assert mock.stats()["completed"] == 0


def test_a_client_that_leaves_a_paced_stream_is_counted(mock: Mock) -> None:
    with mock.ask("mock:tokens=1000 mock:interval=10", stream=True) as stream:
        next(stream)
    assert eventually(lambda: mock.stats()["client_disconnects"] == 1)


def test_a_client_that_leaves_within_its_request_is_counted(mock: Mock) -> None:
    with connected(mock) as connection:
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: mock\r\ncontent-length: 9\r\n\r\n{")
        assert eventually(lambda: mock.stats()["started"] == 1)
    assert eventually(lambda: mock.stats()["client_disconnects"] == 1)


def test_the_stats_count_requests_by_their_id(mock: Mock) -> None:
    for content in ("mock:id=a", "mock:id=b", "mock:id=a"):
        mock.ask(content)
    stats = mock.stats()
    assert stats["ids"] == {"a": 2, "b": 1}
    assert (stats["started"], stats["completed"]) == (3, 3)


def test_only_the_last_user_message_directs(mock: Mock) -> None:
    create: Any = mock.client.chat.completions.create
    messages = [
        {"role": "user", "content": "mock:status=500"},
        {"role": "assistant", "content": "mock:status=501"},
        {"role": "user", "content": "hello"},
        {"role": "system", "content": "mock:status=502"},
    ]
    assert create(model="mock", messages=messages).choices


@pytest.mark.parametrize(
    "content", ["mock:status=200", "mock:status", "mock:tokens=0", "mock:latency=soon", "mock:nothing"]
)
def test_a_directive_with_a_mistake_is_refused(mock: Mock, content: str) -> None:
    with pytest.raises(openai.BadRequestError):
        mock.ask(content)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"messages": []}', b'{"model": "m", "messages": [1]}', b'{"model": 1}', b"\xff"],
)
def test_a_body_that_is_no_chat_request_is_refused(mock: Mock, body: bytes) -> None:
    response = HTTP.post(
        f"{mock.url}/v1/chat/completions", content=body, headers={"Authorization": f"Bearer {API_KEY}"}
    )
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "mock_error"


def test_another_path_is_not_found(mock: Mock) -> None:
    assert HTTP.get(f"{mock.url}/health").json() == {"status": "ok"}
    assert HTTP.get(f"{mock.url}/v1/chat/completions").status_code == 404


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_until_a_signal(number: signal.Signals) -> None:
    process = Process("gateway", "mock-upstream", "--listen", "127.0.0.1:0", "--tokens", "2")
    try:
        url = process.announced(r"mock-upstream ready: (http://[^/\s]+)")
        answer = HTTP.post(f"{url}/v1/chat/completions", content=b'{"model":"mock","messages":[]}').json()
        assert answer["choices"][0]["message"]["content"] == "mock: token1"
        process.signal(number)
        assert process.exit_code() == 0
    finally:
        process.end()


def test_bedrock_answers_whole_in_frames_and_with_errors_of_its_own(mock: Mock) -> None:
    url, key = f"{mock.url}/model/us.amazon.nova-pro-v1%3A0", {"authorization": f"Bearer {API_KEY}"}

    def said(text: str) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": [{"text": text}]}]}

    whole = HTTP.post(f"{url}/converse", json=said("hello there"), headers=key).json()
    assert whole["output"]["message"]["content"][0]["text"].startswith("us.amazon.nova-pro-v1:0: token1")
    assert whole["usage"] == {"inputTokens": 2, "outputTokens": 8, "totalTokens": 10}
    stream = HTTP.post(f"{url}/converse-stream", json=said("hello there"), headers=key)
    assert stream.headers["content-type"] == "application/vnd.amazon.eventstream"
    assert stream.content.count(b"contentBlockDelta") == 8
    refused = HTTP.post(f"{url}/converse", json=said("mock:status=429"), headers=key)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert refused.headers["x-amzn-errortype"] == "ThrottlingException"
    assert refused.json()["message"].startswith("simulated failure with status 429")
    invoked = HTTP.post(f"{url}/invoke", json={"max_tokens": 9, "messages": []}, headers=key)
    assert (invoked.status_code, invoked.headers["x-amzn-errortype"]) == (400, "ValidationException")


def test_vertex_answers_the_official_clients_that_are_made_for_it(mock: Mock) -> None:
    place: dict[str, Any] = {"region": "europe-west1", "project_id": "p", "access_token": API_KEY}
    with anthropic.AnthropicVertex(base_url=f"{mock.url}/v1", max_retries=0, **place) as claude:
        asked: dict[str, Any] = {
            "model": "claude-1",
            "max_tokens": 9,
            "messages": [said_by_user("hello there")],
        }
        whole = claude.messages.create(**asked)
        with claude.messages.stream(**asked) as stream:
            streamed = stream.get_final_message()
        counted = claude.messages.count_tokens(model="claude-1", messages=asked["messages"])
        with pytest.raises(anthropic.RateLimitError):
            claude.messages.create(**{**asked, "messages": [said_by_user("mock:status=429")]})
    said = [block.to_dict()["text"] for block in (*whole.content, *streamed.content)]
    assert said == ["claude-1: token1 token2 token3 token4 token5 token6 token7"] * 2
    assert counted.input_tokens == 2
    token: Any = google.oauth2.credentials.Credentials
    options = genai.types.HttpOptions(base_url=mock.url, api_version="v1")
    with genai.Client(
        vertexai=True, project="p", location="europe-west1", credentials=token(API_KEY), http_options=options
    ) as gemini:
        text = gemini.models.generate_content(model="gemini-3-pro", contents="hello there").text
        events = gemini.models.generate_content_stream(model="gemini-3-pro", contents="hello there")
        assert "".join(event.text or "" for event in events) == text
        assert gemini.models.count_tokens(model="gemini-3-pro", contents="hello there").total_tokens == 2


def said_by_user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_converse_is_cut_and_given_up_as_asked(mock: Mock) -> None:
    url, key = f"{mock.url}/model/m/converse-stream", {"authorization": f"Bearer {API_KEY}"}

    def asked(text: str) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": [{"text": text}]}]}

    with pytest.raises(httpx.RemoteProtocolError):
        HTTP.post(url, json=asked("mock:cut=2"), headers=key)
    with HTTP.stream("POST", url, json=asked("mock:stall=2"), headers=key) as response:
        assert b"messageStart" in next(response.iter_raw())
    assert eventually(lambda: mock.stats()["client_disconnects"] == 1)

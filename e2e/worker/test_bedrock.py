"""Amazon Bedrock behind the official clients of OpenAI and Anthropic, with signed requests."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from proofgate import mock_bedrock
from proofgate.mock_answers import MockBehaviour
from proofgate.mock_bedrock import frame, wrap_event

from e2e.aws_signature import Credentials, fault
from e2e.bedrock_upstream import BedrockUpstream, bedrock_upstream
from e2e.local_gateway import KEYS, LocalGateway
from e2e.programs import PATIENCE, wait_until

GOLDENS = json.loads((Path(__file__).parent / "bedrock_goldens.json").read_text())["cases"]
CREDENTIALS = Credentials(
    "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "TOKEN/EXAMPLE+token==", "us-east-1"
)
NOVA, CLAUDE, PROFILE = "nova", "claude", "profile"
ARN = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3"
UPSTREAM_MODELS = {
    NOVA: "us.amazon.nova-pro-v1:0",
    CLAUDE: "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    PROFILE: ARN,
}
HELLO: list[Any] = [{"role": "user", "content": "hello there"}]
WEATHER = {"name": "weather", "schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
CHAT_TOOLS: list[Any] = [{"type": "function", "function": {"name": WEATHER["name"], "parameters": WEATHER["schema"]}}]
CLAUDE_TOOLS: list[Any] = [{"name": WEATHER["name"], "input_schema": WEATHER["schema"]}]


def write_credentials(folder: Path, credentials: Credentials) -> None:
    (folder / "access-key-id").write_text(credentials.access_key_id + "\n")
    (folder / "secret-access-key").write_text(credentials.secret_access_key + "\n")
    (folder / "session-token").write_text((credentials.session_token or "") + "\n")


@pytest.fixture(scope="module")
def upstream() -> Iterator[BedrockUpstream]:
    with bedrock_upstream(CREDENTIALS) as found:
        yield found


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, upstream: BedrockUpstream) -> Iterator[LocalGateway]:
    folder = tmp_path_factory.mktemp("bedrock")
    gateway = LocalGateway(folder)
    write_credentials(folder, CREDENTIALS)
    provider = {
        "name": "bedrock",
        "type": "Bedrock",
        "baseURL": upstream.url,
        "region": CREDENTIALS.region,
        "auth": {
            "type": "AWSStaticKeys",
            "accessKeyIdFile": "access-key-id",
            "secretAccessKeyFile": "secret-access-key",
            "sessionTokenFile": "session-token",
        },
    }
    models = [{"name": name, "provider": "bedrock", "upstreamModel": model} for name, model in UPSTREAM_MODELS.items()]
    gateway.settings = {"providers": [provider], "models": models}
    try:
        gateway.write_configuration()
        gateway.start_worker()
        yield gateway
    finally:
        gateway.stop()


@pytest.fixture
def client(gateway: LocalGateway) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"], max_retries=0) as found:
        yield found


@pytest.fixture
def claude(gateway: LocalGateway) -> Iterator[anthropic.Anthropic]:
    base_url = gateway.base_url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=base_url, api_key=KEYS["acme"], max_retries=0) as found:
        yield found


def completion_of(gateway: LocalGateway, request_id: str | None) -> dict[str, Any]:
    found = [record for record in gateway.records() if record.get("id") == request_id]
    return next(record for record in found if record["kind"] == "completion")


@pytest.mark.parametrize("case", GOLDENS, ids=lambda case: case["path"])
def test_what_botocore_signs_is_accepted_and_nothing_else(case: dict[str, Any]) -> None:
    credentials = replace(CREDENTIALS, session_token=case["token"])
    path, body, headers = case["path"], case["body"].encode(), case["signed"]
    assert fault(credentials, "POST", path, headers, body) is None
    for wrong in (
        fault(credentials, "POST", path + "x", headers, body),
        fault(credentials, "POST", path, headers, body + b" "),
        fault(credentials, "POST", path, {**headers, "host": "elsewhere"}, body),
        fault(replace(credentials, secret_access_key="x"), "POST", path, headers, body),
    ):
        assert wrong == "the signature is another"


@pytest.mark.parametrize("case", GOLDENS, ids=lambda case: case["path"])
def test_the_stand_in_answers_what_botocore_has_read(case: dict[str, Any]) -> None:
    kind = mock_bedrock.endpoint(case["path"])
    assert kind is not None
    exchange = kind(case["body"].encode(), MockBehaviour(tokens=3), 1, case["path"])
    answer = b"".join(exchange.events()) if exchange.stream else exchange.completion()
    assert base64.b64encode(answer).decode() == case["answer"]


@pytest.mark.parametrize("model", [NOVA, CLAUDE, PROFILE])
def test_the_openai_client_reaches_every_model_of_bedrock_by_converse(
    gateway: LocalGateway, upstream: BedrockUpstream, client: openai.OpenAI, model: str
) -> None:
    # envoyproxy/ai-gateway PR#1332: an ARN is one segment of the path.
    segment = UPSTREAM_MODELS[model].replace(":", "%3A").replace("/", "%2F")
    raw = client.chat.completions.with_raw_response.create(model=model, messages=HELLO)
    completion = raw.parse()
    assert upstream.requests[-1][0] == f"/model/{segment}/converse"
    assert (completion.choices[0].message.content or "").startswith(f"{UPSTREAM_MODELS[model]}: token1")
    assert completion.model == model and completion.choices[0].finish_reason == "stop"
    assert completion_of(gateway, raw.headers["x-request-id"])["usage"] == {"prompt_tokens": 2, "completion_tokens": 8}
    options: Any = {"include_usage": True}
    chunks = list(client.chat.completions.create(model=model, messages=HELLO, stream=True, stream_options=options))
    assert upstream.requests[-1][0] == f"/model/{segment}/converse-stream"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text.startswith(f"{UPSTREAM_MODELS[model]}: token1")
    assert chunks[-1].usage is not None and chunks[-1].usage.total_tokens == 10
    assert upstream.faults == []


@pytest.mark.parametrize("model", [CLAUDE, PROFILE])
def test_the_anthropic_client_reaches_a_claude_model_that_is_invoked(
    gateway: LocalGateway, upstream: BedrockUpstream, claude: anthropic.Anthropic, model: str
) -> None:
    raw = claude.messages.with_raw_response.create(model=model, max_tokens=100, messages=HELLO)
    message = raw.parse()
    path, body = upstream.requests[-1]
    assert path.endswith("/invoke")
    assert json.loads(body) == {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 100, "messages": HELLO}
    assert message.content[0].type == "text" and message.content[0].text.startswith(UPSTREAM_MODELS[model])
    assert completion_of(gateway, raw.headers["x-request-id"])["usage"] == {"prompt_tokens": 2, "completion_tokens": 8}
    with claude.messages.stream(model=model, max_tokens=5, messages=HELLO) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
        request_id = stream.response.headers["x-request-id"]
    assert upstream.requests[-1][0].endswith("/invoke-with-response-stream")
    assert text.startswith(f"{UPSTREAM_MODELS[model]}: token1") and final.stop_reason == "max_tokens"
    assert final.usage.input_tokens == 2 and final.usage.output_tokens == 5
    completion = completion_of(gateway, request_id)
    assert completion["outcome"] == "complete"
    assert completion["usage"] == {"prompt_tokens": 2, "completion_tokens": 5}
    assert upstream.faults == []


def tool_block(index: int, call: str, *fragments: str) -> list[bytes]:
    start = {"toolUse": {"toolUseId": call, "name": "weather"}}
    return [
        frame("contentBlockStart", {"contentBlockIndex": index, "start": start}),
        *(
            frame("contentBlockDelta", {"contentBlockIndex": index, "delta": {"toolUse": {"input": fragment}}})
            for fragment in fragments
        ),
        frame("contentBlockStop", {"contentBlockIndex": index}),
    ]


USAGE = {"inputTokens": 20, "outputTokens": 9, "totalTokens": 29}


def test_parallel_calls_of_tools_keep_their_indexes_and_return_with_their_results(
    upstream: BedrockUpstream, client: openai.OpenAI
) -> None:
    # BerriAI/litellm#15307: the blocks of parallel calls were merged.
    upstream.stream(
        frame("messageStart", {"role": "assistant"}),
        frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Let me see."}}),
        frame("contentBlockStop", {"contentBlockIndex": 0}),
        *tool_block(1, "tooluse_1", '{"city":', '"Bern"}'),
        *tool_block(2, "tooluse_2", '{"city":"', 'Rome"}'),
        frame("messageStop", {"stopReason": "tool_use"}),
        frame("metadata", {"usage": USAGE, "metrics": {"latencyMs": 5}}),
    )
    with client.chat.completions.stream(model=CLAUDE, messages=HELLO, tools=CHAT_TOOLS) as stream:
        completion = stream.get_final_completion()
    message = completion.choices[0].message
    calls = message.tool_calls or []
    assert completion.choices[0].finish_reason == "tool_calls" and message.content == "Let me see."
    assert [(call.id, json.loads(call.function.arguments)) for call in calls] == [
        ("tooluse_1", {"city": "Bern"}),
        ("tooluse_2", {"city": "Rome"}),
    ]
    content = [{"toolUse": {"toolUseId": "tooluse_3", "name": "weather", "input": {"city": "Oslo"}}}]
    upstream.answer(
        200,
        {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "tool_use", "usage": USAGE},
    )
    results: list[Any] = [
        {"role": "tool", "tool_call_id": call.id, "content": f"{number} degrees"} for number, call in enumerate(calls)
    ]
    said: list[Any] = [*HELLO, message.model_dump(exclude_none=True, exclude={"parsed"}), *results]
    for call in said[1]["tool_calls"]:
        call["function"].pop("parsed_arguments", None)
    answer = client.chat.completions.create(model=CLAUDE, messages=said, tools=CHAT_TOOLS)
    sent = json.loads(upstream.requests[-1][1])
    assert [turn["role"] for turn in sent["messages"]] == ["user", "assistant", "user"]
    used = [block["toolUse"]["toolUseId"] for block in sent["messages"][1]["content"] if "toolUse" in block]
    returned = [block["toolResult"]["toolUseId"] for block in sent["messages"][2]["content"]]
    assert used == returned == ["tooluse_1", "tooluse_2"]
    (last,) = answer.choices[0].message.tool_calls or []
    assert last.type == "function" and json.loads(last.function.arguments) == {"city": "Oslo"}
    assert answer.usage is not None and answer.usage.prompt_tokens == 20


def test_parallel_calls_of_an_invoked_model_stay_in_blocks_of_their_own(
    upstream: BedrockUpstream, claude: anthropic.Anthropic
) -> None:
    # BerriAI/litellm#15307.
    message: dict[str, Any] = {
        "id": "msg_bdrk_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 20, "output_tokens": 1},
    }

    def block(index: int, call: str, *fragments: str) -> list[dict[str, Any]]:
        start = {"type": "tool_use", "id": call, "name": "weather", "input": {}}
        return [
            {"type": "content_block_start", "index": index, "content_block": start},
            *(
                {
                    "type": "content_block_delta",
                    "index": index,
                    "delta": {"type": "input_json_delta", "partial_json": fragment},
                }
                for fragment in fragments
            ),
            {"type": "content_block_stop", "index": index},
        ]

    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        *block(0, "toolu_bdrk_1", "", '{"city":', '"Bern"}'),
        *block(1, "toolu_bdrk_2", '{"city":"Rome"}'),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 20}},
    ]
    upstream.stream(*map(wrap_event, events))
    with claude.messages.stream(model=CLAUDE, max_tokens=100, messages=HELLO, tools=CLAUDE_TOOLS) as stream:
        final = stream.get_final_message()
    assert final.stop_reason == "tool_use" and final.usage.output_tokens == 9
    assert [(block.id, block.input) for block in final.content if block.type == "tool_use"] == [
        ("toolu_bdrk_1", {"city": "Bern"}),
        ("toolu_bdrk_2", {"city": "Rome"}),
    ]


def test_errors_raise_what_the_clients_raise_for_their_own_provider(
    upstream: BedrockUpstream, client: openai.OpenAI, claude: anthropic.Anthropic
) -> None:
    for status, name, of_openai, of_anthropic in (
        (400, "ValidationException", openai.BadRequestError, anthropic.BadRequestError),
        (404, "ResourceNotFoundException", openai.NotFoundError, anthropic.NotFoundError),
        (429, "ThrottlingException", openai.RateLimitError, anthropic.RateLimitError),
        (503, "ServiceUnavailableException", openai.InternalServerError, anthropic.InternalServerError),
    ):
        for _ in range(2):
            upstream.answer(status, {"message": "as the test says"}, x_amzn_errortype=name)
        with pytest.raises(of_openai, match="as the test says"):
            client.chat.completions.create(model=NOVA, messages=HELLO)
        with pytest.raises(of_anthropic, match="as the test says"):
            claude.messages.create(model=CLAUDE, max_tokens=9, messages=HELLO, stream=True)


def test_the_clients_try_again_what_the_model_failed_at(
    upstream: BedrockUpstream, client: openai.OpenAI, claude: anthropic.Anthropic
) -> None:
    before = len(upstream.requests)
    for operation in ("converse", "invoke"):
        whole = next(case["answer"] for case in GOLDENS if case["path"].endswith(f"/{operation}"))
        upstream.answer(424, {"message": "it broke"}, x_amzn_errortype="ModelErrorException")
        upstream.answer(200, json.loads(base64.b64decode(whole)))
    patient = client.with_options(max_retries=1)
    assert patient.chat.completions.create(model=NOVA, messages=HELLO).usage is not None
    assert claude.with_options(max_retries=1).messages.create(model=CLAUDE, max_tokens=9, messages=HELLO).content
    assert len(upstream.requests) == before + 4


def test_a_stream_that_is_cut_or_broken_or_throttled_raises_in_either_client(
    upstream: BedrockUpstream, client: openai.OpenAI, claude: anthropic.Anthropic
) -> None:
    begin = frame("messageStart", {"role": "assistant"})
    throttled = frame("throttlingException", {"message": "too many tokens"}, "exception")
    cases: list[tuple[list[bytes | None], str]] = [
        ([begin], "before the answer was complete"),
        ([begin, frame("contentBlockStop", {"contentBlockIndex": 0}), None], "broke the connection"),
        ([begin, begin[:-1] + bytes([begin[-1] ^ 1])], "does not match its API"),
        ([begin, throttled], "too many tokens"),
    ]
    for frames, told in cases:
        upstream.stream(*frames)
        with pytest.raises(openai.APIError, match=told):
            list(client.chat.completions.create(model=NOVA, messages=HELLO, stream=True))
    for frames, told in cases:
        upstream.stream(wrap_event({"type": "ping"}), *frames[1:])
        with (
            pytest.raises(anthropic.APIError, match=told),
            claude.messages.stream(model=CLAUDE, max_tokens=9, messages=HELLO) as stream,
        ):
            stream.get_final_message()


def test_credentials_that_change_are_used_at_once_and_none_of_them_shows(
    gateway: LocalGateway, upstream: BedrockUpstream, client: openai.OpenAI
) -> None:
    other = Credentials("AKIDROTATED", "rotated/SECRET", "rotated/TOKEN==", CREDENTIALS.region)

    def accepted() -> bool:
        try:
            client.chat.completions.create(model=NOVA, messages=HELLO)
        except openai.InternalServerError:
            return False
        return True

    upstream.credentials = other
    try:
        with pytest.raises(openai.InternalServerError, match="does not accept the gateway's key"):
            client.chat.completions.create(model=NOVA, messages=HELLO)
        assert upstream.faults.pop().startswith("it is for another key")
        write_credentials(gateway.folder, other)
        wait_until(accepted, PATIENCE, "the new credentials are used")
    finally:
        upstream.credentials = CREDENTIALS
        write_credentials(gateway.folder, CREDENTIALS)
        # The requests of other tests are signed with the first credentials.
        wait_until(accepted, PATIENCE, "the first credentials are used again")
        upstream.faults.clear()
    places = [
        (gateway.folder / "worker.log").read_text(),
        gateway.admin_text("/status"),
        gateway.admin_text("/metrics"),
        json.dumps(gateway.records()),
    ]
    for credentials in (CREDENTIALS, other):
        for secret in (credentials.secret_access_key, credentials.session_token or ""):
            assert not any(secret in place for place in places)

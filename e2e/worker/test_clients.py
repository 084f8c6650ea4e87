"""Every official client with every provider type: the same result for each client, or a refusal with an error code.

The clients are unmodified. If a provider uses another API than the client, the answer is a translation; if there is no
translation, the test asserts the refusal. The Node clients are marked `node`: `make test-clients` installs their
packages.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, get_args

import pytest
from proofgate.config.settings import Provider

from e2e.aws_signature import Credentials
from e2e.bedrock_upstream import bedrock_upstream
from e2e.local_gateway import KEYS, LocalGateway
from e2e.programs import PATIENCE, wait_until
from e2e.vertex_upstream import LOCATION, PROJECT, vertex_upstream
from e2e.worker.clients.asked import Ask, Client, Failed, Told
from e2e.worker.clients.node import node_client
from e2e.worker.clients.python_anthropic import AnthropicMessages
from e2e.worker.clients.python_google import GoogleGenerate
from e2e.worker.clients.python_openai import OpenAIChat, OpenAIResponses

PROVIDER_KEY = "provider-key-0123456789abcdef"
CREDENTIALS = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None, "us-east-1")


@dataclass(frozen=True)
class Behind:
    """The provider of a model."""

    #: The type of its provider.
    type: str
    #: The provider's name for the model.
    model: str
    #: The clients that reach it.
    clients: frozenset[str]


#: The clients that reach every provider. Google's client reaches only Google.
EVERYWHERE = frozenset({"chat", "responses", "anthropic"})
WITH_GOOGLE = EVERYWHERE | {"google"}
#: Each type of provider; two entries if its models of two makers differ in their clients or in their formats.
PROVIDERS = {
    "OpenAI": Behind("OpenAI", "up-OpenAI", EVERYWHERE),
    "AzureOpenAI": Behind("AzureOpenAI", "up-AzureOpenAI", EVERYWHERE),
    "Anthropic": Behind("Anthropic", "up-Anthropic", EVERYWHERE),
    "Gemini": Behind("Gemini", "up-Gemini", WITH_GOOGLE),
    "Bedrock": Behind("Bedrock", "us.amazon.nova-pro-v1:0", EVERYWHERE),
    "BedrockClaude": Behind("Bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", EVERYWHERE),
    "VertexGemini": Behind("VertexAI", "gemini-3-pro", WITH_GOOGLE),
    "VertexClaude": Behind("VertexAI", "claude-sonnet-4-5@20250929", EVERYWHERE),
}
NODE = pytest.mark.node
CLIENTS = [
    "python-chat",
    "python-responses",
    "python-anthropic",
    "python-google",
    pytest.param("node-chat", marks=NODE),
    pytest.param("node-responses", marks=NODE),
    pytest.param("node-anthropic", marks=NODE),
    pytest.param("node-google", marks=NODE),
]
#: The reason for the end of an answer in each API: at a normal end, and at tool calls.
FINISHES = {
    "chat": ("stop", "tool_calls"),
    "responses": ("completed", "completed"),
    "anthropic": ("end_turn", "tool_use"),
    "google": ("STOP", "STOP"),
}
PNG = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\nIDATx\x9cc\0\1\0\0\5\0\1"
).decode()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGateway]:
    """A gateway in front of a provider of each type; the providers have other names for the models."""
    folder = tmp_path_factory.mktemp("clients")

    def secret(name: str, text: str) -> str:
        file = folder / name
        file.touch(mode=0o600)
        file.write_text(text)
        return str(file)

    gateway = LocalGateway(folder, upstream_arguments=["--api-key", PROVIDER_KEY])
    with ExitStack() as stack:
        stack.callback(gateway.stop)
        gateway.start_upstream()
        bedrock = stack.enter_context(bedrock_upstream(CREDENTIALS))
        vertex = stack.enter_context(vertex_upstream())
        with_key = {
            "baseURL": gateway.upstream_url,
            "auth": {"type": "APIKey", "apiKeyFile": secret("provider-key", PROVIDER_KEY)},
        }
        connections: dict[str, dict[str, Any]] = {
            "Bedrock": {
                "baseURL": bedrock.url,
                "region": CREDENTIALS.region,
                "auth": {
                    "type": "AWSStaticKeys",
                    "accessKeyIdFile": secret("access-key-id", CREDENTIALS.access_key_id),
                    "secretAccessKeyFile": secret("secret-access-key", CREDENTIALS.secret_access_key),
                },
            },
            "VertexAI": {
                "baseURL": f"{vertex.url}/v1",
                "project": PROJECT,
                "location": LOCATION,
                "auth": {
                    "type": "GCPServiceAccountKey",
                    "serviceAccountKeyFile": secret("account.json", vertex.key_file()),
                },
            },
        }
        kinds = dict.fromkeys(behind.type for behind in PROVIDERS.values())
        gateway.settings = {
            "providers": [
                {"name": kind.lower(), "type": kind, **deepcopy(connections.get(kind, with_key))} for kind in kinds
            ],
            "models": [
                {"name": model(name), "provider": behind.type.lower(), "upstreamModel": behind.model}
                for name, behind in PROVIDERS.items()
            ],
        }
        gateway.write_configuration()
        gateway.start_worker()
        yield gateway


@pytest.fixture(scope="module")
def clients(gateway: LocalGateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Client]]:
    """Each client of the tenant acme, created at its first use."""
    base_url, key = gateway.base_url.removesuffix("/v1"), KEYS["acme"]
    folder = tmp_path_factory.mktemp("node")
    made: dict[str, Client] = {}
    with ExitStack() as stack:

        def node(script: str, **settings: bool) -> Client:
            return stack.enter_context(node_client(script, folder, base_url, key, **settings))

        makers: dict[str, Callable[[], Client]] = {
            "python-chat": lambda: OpenAIChat(base_url, key),
            "python-responses": lambda: OpenAIResponses(base_url, key),
            "python-anthropic": lambda: AnthropicMessages(base_url, key),
            "python-google": lambda: GoogleGenerate(base_url, key),
            "node-chat": lambda: node("node_openai"),
            "node-responses": lambda: node("node_openai", responses=True),
            "node-anthropic": lambda: node("node_anthropic"),
            "node-google": lambda: node("node_google"),
        }

        def client(name: str) -> Client:
            if name not in made:
                made[name] = makers[name]()
            return made[name]

        yield client


@pytest.fixture(params=CLIENTS)
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def client(name: str, clients: Callable[[str], Client]) -> Client:
    return clients(name)


@pytest.fixture
def api(name: str) -> str:
    """The API that a client uses."""
    return name.partition("-")[2]


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def model(provider: str) -> str:
    return f"{provider}/a:1"


def told(client: Client, api: str, provider: str, ask: Ask) -> Told | None:
    """The client's result; None if no translation exists. Asserts that the gateway then refuses with the right code."""
    answer = client.ask(ask)
    if api in PROVIDERS[provider].clients:
        assert isinstance(answer, Told), answer
        return answer
    assert isinstance(answer, Failed), answer
    assert (answer.status, (answer.code or "").lower()) == (400, "endpoint_not_supported_by_model"), answer
    return None


def failed(client: Client, ask: Ask) -> Failed:
    answer = client.ask(ask)
    assert isinstance(answer, Failed), answer
    return answer


def test_no_type_of_provider_is_left_out() -> None:
    assert {behind.type for behind in PROVIDERS.values()} == set(get_args(Provider.model_fields["type"].annotation))


@pytest.mark.parametrize("stream", [False, True])
def test_a_text_comes_whole_and_in_pieces_and_is_recorded_with_its_usage(
    client: Client, api: str, provider: str, stream: bool, gateway: LocalGateway
) -> None:
    answer = told(client, api, provider, Ask(model(provider), stream=stream))
    if answer:
        text = f"{PROVIDERS[provider].model}: token1 token2 token3 token4 token5 token6 token7"
        assert (answer.text, answer.calls) == (text, [])
        assert (answer.finish, answer.usage) == (FINISHES[api][0], (2, 8))
        completion = next(record for record in reversed(gateway.records()) if record["kind"] == "completion")
        assert completion["outcome"] == "complete"
        assert completion["usage"] == {"prompt_tokens": 2, "completion_tokens": 8}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("calls", [1, 3])
def test_calls_of_a_tool_arrive_with_their_arguments(
    client: Client, api: str, provider: str, calls: int, stream: bool
) -> None:
    ask = Ask(model(provider), f"mock:calls={calls}", stream=stream, tools=True)
    answer = told(client, api, provider, ask)
    if answer:
        expected = [("look", {"city": f"city-{number}"}) for number in range(1, calls + 1)]
        assert (answer.calls, answer.text) == (expected, "")
        assert answer.finish == FINISHES[api][1]


@pytest.mark.parametrize("stream", [False, True])
def test_what_tools_gave_goes_back_to_the_model(client: Client, api: str, provider: str, stream: bool) -> None:
    answer = told(client, api, provider, Ask(model(provider), results=True, stream=stream))
    if answer:
        assert answer.text.startswith(f"{PROVIDERS[provider].model}: token1") and answer.finish == FINISHES[api][0]


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_has_the_schema_that_it_has_to_have(client: Client, api: str, provider: str, stream: bool) -> None:
    answer = told(client, api, provider, Ask(model(provider), schema=True, stream=stream))
    if answer:
        # The stand-in gives this answer only if the request has the schema in its own API's format.
        assert json.loads(answer.text) == {"city": "sample", "days": 7}


def test_a_picture_reaches_the_model(client: Client, api: str, provider: str) -> None:
    answer = told(client, api, provider, Ask(model(provider), picture=PNG))
    if answer:
        assert answer.text.startswith(
            f"{PROVIDERS[provider].model}: saw image/png of {len(base64.b64decode(PNG))} bytes; token1"
        )


def test_a_long_prompt_reaches_the_model_whole(client: Client, api: str, provider: str) -> None:
    words = 300_000
    answer = told(client, api, provider, Ask(model(provider), "word " * words))
    if answer:
        assert answer.usage == (words, 8)


@pytest.mark.parametrize(
    ("status", "kinds"),
    [
        (400, {"BadRequestError", "ClientError", "ApiError"}),
        (429, {"RateLimitError", "ClientError", "ApiError"}),
        (500, {"InternalServerError", "ServerError", "ApiError"}),
        (503, {"InternalServerError", "ServiceUnavailableError", "ServerError", "ApiError", "OverloadedError"}),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_an_error_of_the_provider_is_raised_as_the_client_knows_it(
    client: Client, api: str, provider: str, status: int, kinds: set[str], stream: bool
) -> None:
    ask = Ask(model(provider), f"mock:status={status}", stream=stream)
    if api not in PROVIDERS[provider].clients:
        assert told(client, api, provider, ask) is None
        return
    error = failed(client, ask)
    assert error.status == status and error.kind in kinds, error
    assert "simulated failure" in error.message
    if status in (429, 503):
        assert error.retry in ("1", "1s"), error
    else:
        assert error.retry is None, error


def test_a_stream_that_is_cut_off_raises(client: Client, api: str, provider: str) -> None:
    ask = Ask(model(provider), "mock:cut=3", stream=True)
    if api not in PROVIDERS[provider].clients:
        assert told(client, api, provider, ask) is None
        return
    error = failed(client, ask)
    assert "before the answer was complete" in error.message or "broke the connection" in error.message, error


def test_a_client_that_leaves_a_stream_cancels_its_upstream_and_is_recorded(
    client: Client, api: str, provider: str, gateway: LocalGateway
) -> None:
    def left() -> list[object]:
        records = gateway.records()
        return [record["id"] for record in records if record.get("outcome") == "client_disconnect"]

    def cancelled() -> int:
        urls = {settings["baseURL"] for settings in gateway.settings["providers"]}
        return sum(gateway.upstream_stats(url)["client_disconnects"] for url in urls)

    left_before, cancelled_before = len(left()), cancelled()
    ask = Ask(model(provider), "mock:stall=3", stream=True, leave=True)
    if told(client, api, provider, ask):
        wait_until(lambda: cancelled() > cancelled_before, PATIENCE, "the upstream is cancelled")
        wait_until(lambda: len(left()) > left_before, PATIENCE, "the exchange is completed")


def test_the_gateways_own_errors_are_raised_as_the_client_knows_them(client: Client, api: str) -> None:
    unknown = failed(client, Ask("nobodys"))
    assert (unknown.status, (unknown.code or "").lower()) == (404, "model_not_found")
    assert unknown.kind in ("NotFoundError", "ClientError", "ApiError")
    stranger = failed(client, Ask("nobodys", key="stranger-key-0123456789abcdef"))
    assert (stranger.status, (stranger.code or "").lower()) == (401, "invalid_api_key")
    assert stranger.kind in ("AuthenticationError", "ClientError", "ApiError")

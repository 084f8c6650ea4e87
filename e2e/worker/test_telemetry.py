"""Telemetry, end to end: the data for a collector and the access log; a failing collector affects no request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.loopback_server import refusing_address
from e2e.programs import PATIENCE, wait_until
from e2e.worker.otlp_receiver import Receiver, attributes, receiver
from e2e.worker.raw_http import chat_request, send, status_of

PROMPT = "the bluebird sings at dawn"
SECRET = "Bearer collector-secret-0123456789"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


@contextmanager
def observed(folder: Path, endpoint: str, **more: Any) -> Iterator[LocalGateway]:
    """A gateway that exports to a collector. The first provider of its model `fallen` is not reachable."""
    folder.mkdir(exist_ok=True)
    (folder / "collector-token").write_text(SECRET + "\n")
    telemetry = {
        "accessLog": "All",
        "endpoint": endpoint,
        "headers": [{"name": "Authorization", "valueFile": "collector-token"}],
        "traces": {"ratio": 1},
        "metrics": True,
        "resourceAttributes": [{"name": "deployment.environment.name", "value": "test"}],
        **more,
    }
    with refusing_address() as nobody:
        gateway = LocalGateway(folder)
        gateway.start_upstream()
        gateway.settings = {
            "providers": [
                {"name": "mock", "type": "OpenAI", "baseURL": gateway.upstream_url, "objectsOf": "acme"},
                {"name": "nobody", "type": "OpenAI", "baseURL": f"http://{nobody}/v1"},
            ],
            "models": [
                {"name": MODEL, "provider": "mock"},
                {
                    "name": "fallen",
                    "provider": "nobody",
                    "fallbacks": [{"provider": "mock", "upstreamModel": MODEL}],
                },
            ],
            "telemetry": telemetry,
        }
        try:
            gateway.write_configuration()
            gateway.start_worker()
            yield gateway
        finally:
            gateway.stop()


def ask(gateway: LocalGateway, extra: bytes = b"", **more: Any) -> tuple[int, str]:
    """Requests a completion; returns the status and the request's id."""
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": PROMPT}], **more})
    response = send(gateway.address, chat_request(body.encode(), KEYS["acme"], extra))
    found = re.search(rb"(?i)\r\nx-request-id: (\S+)", response)
    assert found, response
    return status_of(response), found[1].decode()


def pair(collector: Receiver, request_id: str) -> tuple[Span, Span | None]:
    wait_until(lambda: collector.has(request_id), PATIENCE, "the collector has the spans")
    return collector.pair(request_id)


def lines(gateway: LocalGateway) -> list[dict[str, Any]]:
    text = (gateway.folder / "worker.log").read_text()
    return [json.loads(line) for line in text.splitlines() if line.startswith('{"ts":')]


def lost(gateway: LocalGateway, signal: str) -> int:
    found = re.search(
        rf'^proofgate_telemetry_dropped_total{{signal="{signal}"}} (\d+)$', gateway.admin_text("/metrics"), re.M
    )
    return int(found[1]) if found else 0


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Receiver, LocalGateway]]:
    with receiver() as collector, observed(tmp_path_factory.mktemp("observed") / "gateway", collector.url) as gateway:
        yield collector, gateway


def test_an_exchange_is_a_server_span_and_a_client_span_in_the_clients_trace(
    exported: tuple[Receiver, LocalGateway],
) -> None:
    collector, gateway = exported
    status, request_id = ask(gateway, f"traceparent: 00-{TRACE}-{PARENT}-01\r\n".encode())
    server, client = pair(collector, request_id)
    assert client is not None
    assert (status, server.kind, client.kind) == (200, Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CLIENT)
    assert (server.name, client.name) == ("POST /v1/chat/completions", f"chat {MODEL}")
    assert {server.trace_id.hex(), client.trace_id.hex()} == {TRACE}
    assert (server.parent_span_id.hex(), client.parent_span_id) == (PARENT, server.span_id)
    assert server.start_time_unix_nano <= client.start_time_unix_nano < client.end_time_unix_nano
    assert client.end_time_unix_nano <= server.end_time_unix_nano
    [record] = [one for one in gateway.records() if one.get("id") == request_id and one["kind"] == "completion"]
    told = attributes(client)
    usage = record["usage"]
    assert told["gen_ai.usage.input_tokens"] == usage["prompt_tokens"]
    assert told["gen_ai.usage.output_tokens"] == usage["completion_tokens"]
    host, port = gateway.upstream_url.removeprefix("http://").removesuffix("/v1").split(":")
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": MODEL,
        "gen_ai.request.stream": False,
        "server.address": host,
        "server.port": int(port),
        "proofgate.attempts": 1,
    }
    assert {name: told[name] for name in expected} == expected
    about = attributes(server)
    assert (about["http.response.status_code"], about["proofgate.tenant"]) == (200, "acme")
    assert "error.type" not in told | about
    resource = collector.resources[0]
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("proofgate", "test")


def test_a_stream_says_how_long_its_first_chunk_took(exported: tuple[Receiver, LocalGateway]) -> None:
    collector, gateway = exported
    _, client = pair(collector, ask(gateway, stream=True)[1])
    assert client is not None
    told = attributes(client)
    seconds = (client.end_time_unix_nano - client.start_time_unix_nano) / 1e9
    assert told["gen_ai.request.stream"] is True
    assert 0 <= told["gen_ai.response.time_to_first_chunk"] <= seconds


def test_a_refused_request_has_its_code_and_no_span_of_a_provider(exported: tuple[Receiver, LocalGateway]) -> None:
    collector, gateway = exported
    status, request_id = ask(gateway, model="not-there")
    server, client = pair(collector, request_id)
    assert (status, client) == (404, None)
    assert attributes(server)["error.type"] == "model_not_found"
    assert server.status.code == Status.STATUS_CODE_UNSET


def test_what_is_asked_of_files_is_named_by_its_method_and_has_no_model(
    exported: tuple[Receiver, LocalGateway],
) -> None:
    collector, gateway = exported
    fields = f"Host: gateway\r\nAuthorization: Bearer {KEYS['acme']}\r\nConnection: close"
    head = f"DELETE /v1/files/file-1 HTTP/1.1\r\n{fields}\r\n\r\n"
    found = re.search(rb"(?i)\r\nx-request-id: (\S+)", send(gateway.address, head.encode()))
    assert found
    request_id = found[1].decode()
    server, client = pair(collector, request_id)
    assert client is not None
    assert (server.name, client.name) == ("DELETE /v1/files/{id}", "delete_file")
    about, told = attributes(server), attributes(client)
    assert (about["http.request.method"], about["http.route"]) == ("DELETE", "/v1/files/{id}")
    assert told["gen_ai.operation.name"] == "delete_file"
    assert "gen_ai.request.model" not in told and "proofgate.model" not in about
    wait_until(
        lambda: any(line["id"] == request_id for line in lines(gateway)), PATIENCE, "the access log has the line"
    )
    [line] = [line for line in lines(gateway) if line["id"] == request_id]
    assert (line["endpoint"], line["provider"]) == ("DELETE /v1/files/{id}", "mock")
    assert "model" not in line and "upstream_model" not in line


def test_after_a_fallback_the_span_is_of_the_provider_that_answered(exported: tuple[Receiver, LocalGateway]) -> None:
    collector, gateway = exported
    status, request_id = ask(gateway, model="fallen")
    _, client = pair(collector, request_id)
    assert (status, client is not None) == (200, True)
    told = attributes(client)
    assert (told["proofgate.provider"], told["gen_ai.request.model"], told["proofgate.attempts"]) == ("mock", MODEL, 2)


def test_metrics_are_exported_with_the_names_of_the_conventions(exported: tuple[Receiver, LocalGateway]) -> None:
    collector, gateway = exported
    ask(gateway)
    name = "gen_ai.client.inference.duration"

    def has_points() -> bool:
        return name in collector.metrics and bool(collector.metrics[name].histogram.data_points)

    wait_until(has_points, PATIENCE, "the collector has metrics of an exchange")
    points = list(collector.metrics[name].histogram.data_points)
    assert {attributes(point)["gen_ai.request.model"] for point in points} <= {MODEL, "fallen"}
    for point in points:
        assert list(point.explicit_bounds)[:2] == [0.01, 0.02]
        assert sum(point.bucket_counts) == point.count
    tokens = collector.metrics["gen_ai.client.inference.usage.input_tokens"].sum
    assert {attributes(point)["gen_ai.token.modality"] for point in tokens.data_points} == {"unknown"}


def test_the_access_log_has_a_line_for_each_exchange(exported: tuple[Receiver, LocalGateway]) -> None:
    _, gateway = exported
    _, request_id = ask(gateway, stream=True)

    def found() -> list[dict[str, Any]]:
        return [line for line in lines(gateway) if line["id"] == request_id]

    wait_until(found, PATIENCE, "the access log has the line")
    [line] = found()
    expected = {"tenant": "acme", "model": MODEL, "provider": "mock", "stream": True, "status": 200}
    assert {name: line[name] for name in expected} == expected
    assert (line["outcome"], line["endpoint"]) == ("complete", "/v1/chat/completions")


def test_neither_prompt_nor_key_nor_secret_is_told_anywhere(exported: tuple[Receiver, LocalGateway]) -> None:
    collector, gateway = exported
    for more in ({}, {"stream": True}, {"model": "not-there"}, {"messages": [PROMPT]}):
        pair(collector, ask(gateway, **more)[1])
    assert {one["authorization"] for one in collector.headers} == {SECRET}
    told = [*collector.bodies, (gateway.folder / "worker.log").read_bytes(), gateway.admin_text("/metrics").encode()]
    told.append(gateway.admin_text("/status").encode())
    for secret in (PROMPT, *KEYS.values(), SECRET.removeprefix("Bearer ")):
        assert not any(secret.encode() in text for text in told), secret


def test_a_collector_that_is_down_or_refuses_costs_telemetry_alone_and_is_counted(folder: Path) -> None:
    with receiver() as collector, observed(folder / "gateway", collector.url, accessLog="Errors") as gateway:
        collector.status = 400
        assert ask(gateway)[0] == 200
        wait_until(lambda: lost(gateway, "traces") >= 1, PATIENCE, "the lost trace is counted")
        assert gateway.status()["telemetry"]["error"] is not None
        collector.status = 200
        _, request_id = ask(gateway)
        pair(collector, request_id)
        assert [line for line in lines(gateway) if line["status"] == 200] == []


def test_a_reload_switches_telemetry_on_and_off(folder: Path) -> None:
    with receiver() as collector, local_gateway(folder / "gateway") as gateway:
        ask(gateway)
        gateway.settings = {"telemetry": {"endpoint": collector.url, "traces": {"ratio": 1}}}
        gateway.write_configuration()
        gateway.admin_text("/reload", "POST", gateway.admin_token)
        _, request_id = ask(gateway)
        pair(collector, request_id)
        gateway.settings = {}
        gateway.write_configuration()
        gateway.admin_text("/reload", "POST", gateway.admin_token)
        ask(gateway)
        assert len(collector.spans) == 2
        assert lines(gateway) == []

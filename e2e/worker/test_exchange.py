"""The view of one exchange by the client, the upstream and the ledger."""

from __future__ import annotations

import json
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.loopback_server import refusing_address
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import answer, chat_request, error_of, recording_upstream, send, status_of

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
COMPLETION = b'{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}'


def records_of(gateway: LocalGateway, request_id: str) -> dict[str, dict[str, Any]]:
    return {record["kind"]: record for record in gateway.records() if record.get("id") == request_id}


def test_the_openai_client_gets_a_unary_answer(client: OpenAI) -> None:
    completion = client.chat.completions.create(model=MODEL, messages=HELLO)
    assert (completion.choices[0].message.content or "").startswith(f"{MODEL}: token1")
    assert completion.usage is not None and completion.usage.completion_tokens == 8


def test_the_openai_client_gets_a_streamed_answer_as_it_arrives(gateway: LocalGateway, client: OpenAI) -> None:
    message = "mock:tokens=3 mock:stall=2"
    stream = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": message}], stream=True)
    first = next(iter(stream))
    assert first.model == MODEL
    stream.close()
    wait_until(lambda: gateway.upstream_stats()["client_disconnects"] >= 1, PATIENCE, "the upstream is cancelled")


def test_both_records_of_an_exchange_are_written_and_agree(gateway: LocalGateway, client: OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=HELLO)
    records = records_of(gateway, raw.headers["x-request-id"])
    admission, completion = records["admission"], records["completion"]
    assert admission["tenant"] == "acme" and admission["model"] == MODEL and not admission["stream"]
    assert completion["admission"] == admission["seq"] and completion["outcome"] == "complete"
    assert completion["status"] == 200 and completion["bytes"] == len(raw.content)
    assert completion["usage"] == {"prompt_tokens": 1, "completion_tokens": 8}


def test_a_streams_usage_is_recorded(gateway: LocalGateway, client: OpenAI) -> None:
    with client.chat.completions.with_streaming_response.create(
        model=MODEL, messages=HELLO, stream=True, stream_options={"include_usage": True}
    ) as raw:
        body = raw.read()
    assert body.endswith(b"data: [DONE]\n\n")
    completion = records_of(gateway, raw.headers["x-request-id"])["completion"]
    assert completion["usage"] == {"prompt_tokens": 1, "completion_tokens": 8}


def test_a_client_that_leaves_is_recorded_and_its_upstream_cancelled(gateway: LocalGateway, client: OpenAI) -> None:
    before = gateway.upstream_stats()["client_disconnects"]
    stream = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "mock:stall=2"}], stream=True
    )
    request_id = stream.response.headers["x-request-id"]
    stream.close()
    wait_until(lambda: gateway.upstream_stats()["client_disconnects"] > before, PATIENCE, "the upstream is cancelled")
    wait_until(lambda: "completion" in records_of(gateway, request_id), PATIENCE, "the exchange is completed")
    assert records_of(gateway, request_id)["completion"]["outcome"] == "client_disconnect"


def test_a_body_is_forwarded_byte_for_byte(folder: Path) -> None:
    body = b'{ "messages" : [{"role":"user","content":"\\u00e9\xc3\xa9  x"}],\n\t"model":"gpt-4o-mini" ,"n":1}'
    with recording_upstream(answer(COMPLETION)) as upstream:
        settings = {"providers": [{"name": "mock", "type": "OpenAI", "baseURL": f"http://{upstream.url}/v1"}]}
        with local_gateway(folder, settings=settings) as gateway:
            assert send(gateway.address, chat_request(body, KEYS["acme"])).endswith(COMPLETION)
    head, received = upstream.requests[0].split(b"\r\n\r\n", 1)
    assert received == body
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\nHost: " + upstream.url.encode())
    assert KEYS["acme"].encode() not in head


def test_another_name_upstream_replaces_nothing_but_the_models_value(folder: Path) -> None:
    body = b'{"metadata":{"model":"public"},  "model" : "public","stream":false}'
    with recording_upstream(answer(COMPLETION)) as upstream:
        settings = {
            "providers": [{"name": "mock", "type": "OpenAI", "baseURL": f"http://{upstream.url}/v1"}],
            "models": [{"name": "public", "provider": "mock", "upstreamModel": "internal-7"}],
        }
        with local_gateway(folder, settings=settings) as gateway:
            assert status_of(send(gateway.address, chat_request(body, KEYS["acme"]))) == 200
    received = upstream.requests[0].split(b"\r\n\r\n", 1)[1]
    assert received == b'{"metadata":{"model":"public"},  "model" : "internal-7","stream":false}'


def test_an_https_upstream_is_reached_when_its_authority_is_trusted(folder: Path) -> None:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-addext", "basicConstraints=critical,CA:FALSE"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    body = json.dumps({"model": MODEL, "messages": []}).encode()
    with recording_upstream(answer(COMPLETION), context) as upstream:
        provider = {"name": "tls", "type": "OpenAI", "baseURL": f"https://localhost:{upstream.port}/v1"}
        models = [{"name": MODEL, "provider": "tls"}]
        (folder / "trusting").mkdir()
        trusting = {"providers": [{**provider, "caFile": str(certificate)}], "models": models}
        with local_gateway(folder / "trusting", settings=trusting) as gateway:
            assert send(gateway.address, chat_request(body, KEYS["acme"])).endswith(COMPLETION)
        (folder / "distrusting").mkdir()
        with local_gateway(folder / "distrusting", settings={"providers": [provider], "models": models}) as gateway:
            assert status_of(send(gateway.address, chat_request(body, KEYS["acme"]))) == 502


@pytest.mark.parametrize(
    ("message", "timeouts", "status", "outcome"),
    [
        ("mock:status=500", {}, 500, "complete"),
        ("mock:hang", {"upstreamResponseSeconds": 1}, 504, "upstream_timeout"),
    ],
)
def test_an_upstream_that_fails_is_told_to_the_client_and_recorded(
    folder: Path, message: str, timeouts: dict[str, int], status: int, outcome: str
) -> None:
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": message}]}).encode()
    with local_gateway(folder, settings={"timeouts": timeouts}) as gateway:
        response = send(gateway.address, chat_request(body, KEYS["acme"]))
        assert status_of(response) == status
        completion = next(record for record in gateway.records() if record["kind"] == "completion")
        assert completion["outcome"] == outcome and completion["status"] == status


def test_an_upstream_that_is_down_is_a_502_in_openais_error_shape(folder: Path) -> None:
    body = json.dumps({"model": MODEL, "messages": HELLO}).encode()
    with refusing_address() as nobody:
        settings = {"providers": [{"name": "mock", "type": "OpenAI", "baseURL": f"http://{nobody}/v1"}]}
        with local_gateway(folder, settings=settings) as gateway:
            response = send(gateway.address, chat_request(body, KEYS["acme"]))
    assert status_of(response) == 502
    assert error_of(response)["code"] == "upstream_unreachable" and error_of(response)["type"] == "api_error"


def test_an_upstream_that_closes_without_an_answer_is_a_502(folder: Path) -> None:
    body = json.dumps({"model": MODEL, "messages": HELLO}).encode()
    with recording_upstream(b"") as upstream:
        settings = {"providers": [{"name": "mock", "type": "OpenAI", "baseURL": f"http://{upstream.url}/v1"}]}
        with local_gateway(folder, settings=settings) as gateway:
            response = send(gateway.address, chat_request(body, KEYS["acme"]))
            completion = next(record for record in gateway.records() if record["kind"] == "completion")
    assert status_of(response) == 502
    assert completion["outcome"] == "upstream_error" and completion["upstream_status"] is None


def test_an_answer_that_breaks_in_the_middle_is_cut_short_and_recorded(gateway: LocalGateway) -> None:
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "mock:cut=1"}]}).encode()
    response = send(gateway.address, chat_request(body, KEYS["acme"]))
    head, received = response.split(b"\r\n\r\n", 1)
    announced = int(head.lower().split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0])
    request_id = head.lower().split(b"x-request-id: ", 1)[1].split(b"\r\n", 1)[0].decode()
    assert len(received) < announced
    assert records_of(gateway, request_id)["completion"]["outcome"] == "upstream_error"

"""TLS and HTTP/2 towards clients: the same gateway with other protocols."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import AuthenticationError, OpenAI
from proofgate import _core

from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import chat_request

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
BODY = json.dumps({"model": MODEL, "messages": HELLO}).encode()


def write_certificate(folder: Path) -> None:
    """Creates a certificate for 127.0.0.1."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=gateway", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-addext", "basicConstraints=critical,CA:FALSE"]
    command += ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt")]
    subprocess.run(command, check=True, capture_output=True)


def trust(folder: Path, *protocols: str) -> ssl.SSLContext:
    """A TLS context that trusts the certificate in the folder and offers these protocols."""
    context = ssl.create_default_context(cafile=str(folder / "tls.crt"))
    context.set_alpn_protocols(list(protocols))
    return context


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGateway]:
    """One gateway with TLS; its ledger must verify after all tests."""
    folder = tmp_path_factory.mktemp("tls")
    write_certificate(folder)
    tls = {"certificateFile": str(folder / "tls.crt"), "privateKeyFile": str(folder / "tls.key"), "minVersion": "1.2"}
    with local_gateway(folder, settings={"tls": tls}) as running:
        yield running
        assert running.worker is not None and running.worker.stop() == 0
        code, report = _core.fsck(str(running.ledger), running.verifying_key)
        assert code == 0, report


def openai(gateway: LocalGateway, http2: bool = True, key: str = KEYS["acme"]) -> OpenAI:
    """The official client, without automatic retries."""
    transport = httpx2.Client(http1=not http2, http2=http2, verify=trust(gateway.folder), timeout=PATIENCE)
    base_url = f"https://{gateway.address}/v1"
    return OpenAI(base_url=base_url, api_key=key, max_retries=0, http_client=transport)


def connect(gateway: LocalGateway, *protocols: str) -> ssl.SSLSocket:
    host, port = gateway.address.split(":")
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE)
    return trust(gateway.folder, *protocols).wrap_socket(connection, server_hostname=host)


def records_of(gateway: LocalGateway, request_id: str) -> dict[str, dict[str, Any]]:
    return {record["kind"]: record for record in gateway.records() if record.get("id") == request_id}


def test_the_openai_client_gets_a_unary_answer_over_http_2(gateway: LocalGateway) -> None:
    with openai(gateway) as client:
        raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=HELLO)
    assert raw.http_response.http_version == "HTTP/2"
    assert (raw.parse().choices[0].message.content or "").startswith(f"{MODEL}: token1")
    completion = records_of(gateway, raw.headers["x-request-id"])["completion"]
    assert completion["outcome"] == "complete" and completion["bytes"] == len(raw.content)


def test_the_openai_client_gets_a_streamed_answer_over_http_2(gateway: LocalGateway) -> None:
    with openai(gateway) as client:
        stream = client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        assert stream.response.http_version == "HTTP/2"
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    assert text.startswith(f"{MODEL}: token1")


def test_a_chunk_arrives_as_it_is_sent_and_a_client_that_leaves_cancels_the_upstream(gateway: LocalGateway) -> None:
    disconnects = gateway.upstream_stats()["client_disconnects"]
    message: list[Any] = [{"role": "user", "content": "mock:tokens=3 mock:stall=2"}]
    # This client never resets a stream, but closes its connection.
    with openai(gateway) as client:
        stream = client.chat.completions.create(model=MODEL, messages=message, stream=True)
        assert next(iter(stream)).model == MODEL
    wait_until(
        lambda: gateway.upstream_stats()["client_disconnects"] > disconnects, PATIENCE, "the upstream is cancelled"
    )
    request_id = stream.response.headers["x-request-id"]
    wait_until(lambda: "completion" in records_of(gateway, request_id), PATIENCE, "the exchange is completed")
    assert records_of(gateway, request_id)["completion"]["outcome"] == "client_disconnect"


@pytest.mark.parametrize("stream", [False, True])
def test_the_records_are_the_same_as_over_http_1(gateway: LocalGateway, stream: bool) -> None:
    told = []
    for http2 in (False, True):
        with openai(gateway, http2) as client:
            create = client.chat.completions.with_streaming_response.create
            with create(model=MODEL, messages=HELLO, stream=stream) as raw:
                assert raw.http_response.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
                raw.read()
        records = records_of(gateway, raw.headers["x-request-id"])
        assert records.keys() == {"admission", "completion"}
        # Fields that differ between any two exchanges: ids, times, durations, and the salted commitments.
        own = {"seq", "tenant_seq", "ts", "id", "admission", "log", "duration_us", "request", "salt", "response"}
        told.append({kind: {k: v for k, v in record.items() if k not in own} for kind, record in records.items()})
    assert told[0] == told[1]


def test_a_refusal_over_http_2_is_told_and_recorded(gateway: LocalGateway) -> None:
    with openai(gateway, key="x" * 40) as stranger, pytest.raises(AuthenticationError) as refused:
        stranger.chat.completions.create(model=MODEL, messages=HELLO)
    assert refused.value.response.http_version == "HTTP/2"
    record = records_of(gateway, refused.value.response.headers["x-request-id"])["rejection"]
    assert record["status"] == 401 and record["tenant"] is None


def test_http_1_over_tls_serves_clients_that_offer_nothing_else(gateway: LocalGateway) -> None:
    with connect(gateway) as connection:
        connection.sendall(chat_request(BODY, KEYS["acme"]))
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_client_that_does_not_speak_tls_is_told_so_in_tls_and_closed_in_peace(gateway: LocalGateway) -> None:
    host, port = gateway.address.split(":")
    records = len(gateway.records())
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: gateway\r\n\r\n")
        # A reset would raise an exception here.
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    alert, fatal = 21, 2
    assert (answer[0], answer[5]) == (alert, fatal)
    assert len(gateway.records()) == records

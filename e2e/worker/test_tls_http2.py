"""TLS and HTTP/2 towards clients: the same gateway behind another wire."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, Event, ResponseReceived, StreamEnded, StreamReset
from openai import AuthenticationError, OpenAI
from proofgate import _core

from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.held_stream import held_stream
from e2e.worker.raw_http import chat_request

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
BODY = json.dumps({"model": MODEL, "messages": HELLO}).encode()
Fields = list[tuple[str, str]]


def write_certificate(folder: Path) -> None:
    """Puts a new certificate for 127.0.0.1 in the place of the old one."""
    fresh = folder / "fresh"
    fresh.mkdir()
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=gateway", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-addext", "basicConstraints=critical,CA:FALSE"]
    command += ["-keyout", str(fresh / "tls.key"), "-out", str(fresh / "tls.crt")]
    subprocess.run(command, check=True, capture_output=True)
    for name in ("tls.key", "tls.crt"):
        (fresh / name).rename(folder / name)
    shutil.rmtree(fresh)


def trust(folder: Path, *protocols: str) -> ssl.SSLContext:
    """Trusts the certificate that is in the folder now, and offers these protocols."""
    context = ssl.create_default_context(cafile=str(folder / "tls.crt"))
    context.set_alpn_protocols(list(protocols))
    return context


def start(folder: Path, upstream: str | None = None) -> Any:
    write_certificate(folder)
    tls = {"certificateFile": str(folder / "tls.crt"), "privateKeyFile": str(folder / "tls.key"), "minVersion": "1.2"}
    providers = [{"name": "mock", "type": "OpenAI", "baseURL": upstream}]
    return local_gateway(folder, settings={"tls": tls, **({"providers": providers} if upstream else {})})


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGateway]:
    """One gateway with TLS, whose ledger is whole after everything that these tests do to it."""
    with start(tmp_path_factory.mktemp("tls")) as running:
        yield running
        assert running.worker is not None and running.worker.stop() == 0
        code, report = _core.fsck(str(running.ledger), running.verifying_key)
        assert code == 0, report


def openai(gateway: LocalGateway, http2: bool = True, key: str = KEYS["acme"]) -> OpenAI:
    """The official client, without retries of its own."""
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
    # This client never resets a stream: it leaves by closing its connection.
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
        # Differs between any two exchanges: which one it is, when, for how long, and the salted commitments.
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
        # A reset would raise.
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    alert, fatal = 21, 2
    assert (answer[0], answer[5]) == (alert, fatal)
    assert len(gateway.records()) == records


def test_tls_1_1_is_refused(gateway: LocalGateway) -> None:
    command = ["openssl", "s_client", "-connect", gateway.address, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]
    refused = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE)
    assert refused.returncode != 0 and b"alert" in refused.stderr


def test_a_replaced_certificate_is_shown_to_new_connections_while_an_open_stream_goes_on(folder: Path) -> None:
    with held_stream() as (url, release), start(folder, url) as gateway, openai(gateway) as client:
        before = (folder / "tls.crt").read_text()
        stream = client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        chunks = [next(iter(stream))]
        write_certificate(folder)
        after = (folder / "tls.crt").read_text()
        assert before != after
        expected = ssl.PEM_cert_to_DER_cert(after)

        def is_shown() -> bool:
            try:
                with connect(gateway) as connection:
                    return connection.getpeercert(binary_form=True) == expected
            except ssl.SSLCertVerificationError:
                return False

        wait_until(is_shown, PATIENCE, "the new certificate is shown")
        assert gateway.status()["in_flight"] == 1
        release.set()
        chunks += list(stream)
        assert chunks[-1].choices[0].finish_reason == "stop"
        request_id = stream.response.headers["x-request-id"]
        # The connection that was opened under the old certificate is used on.
        client.chat.completions.create(model=MODEL, messages=HELLO)
        assert records_of(gateway, request_id)["completion"]["outcome"] == "complete"


def outcome(gateway: LocalGateway, fields: Fields, body: bytes) -> str:
    """What becomes of an HTTP/2 request whose fields are sent as they are: its status, or which frame ends it."""
    fields = [
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "gateway"),
        (":path", "/v1/chat/completions"),
        ("authorization", f"Bearer {KEYS['acme']}"),
        *fields,
    ]
    # It checks nothing of what it sends, not even that it is HTTP/2.
    config = H2Configuration(validate_outbound_headers=False, normalize_outbound_headers=False)
    http2 = H2Connection(config)
    with connect(gateway, "h2") as connection:
        assert connection.selected_alpn_protocol() == "h2"
        http2.initiate_connection()
        http2.send_headers(1, fields)
        http2.send_data(1, body, end_stream=True)
        connection.sendall(http2.data_to_send())
        status = ""
        while received := connection.recv(65536):
            for event in http2.receive_data(received):
                status = status_in(event) or status
                if isinstance(event, StreamEnded | StreamReset | ConnectionTerminated):
                    return status
                if isinstance(event, DataReceived):
                    http2.acknowledge_received_data(event.flow_controlled_length, 1)
            connection.sendall(http2.data_to_send())
    return status


def status_in(event: Event) -> str:
    if isinstance(event, ResponseReceived):
        return next(value.decode() for name, value in event.headers if name == b":status")
    if isinstance(event, StreamReset):
        return f"RST_STREAM {event.error_code}"
    return f"GOAWAY {event.error_code}" if isinstance(event, ConnectionTerminated) else ""


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ([("content-length", str(len(BODY) - 1))], "RST_STREAM 1"),
        ([("content-length", str(len(BODY) + 1))], "RST_STREAM 1"),
        ([("content-length", f"0{len(BODY)}")], "400"),
        ([("content-length", str(len(BODY)))] * 2, "400"),
        ([("transfer-encoding", "chunked")], "RST_STREAM 1"),
        ([("transfer_encoding", "chunked")], "400"),
        ([("connection", "close")], "RST_STREAM 1"),
        ([("x-a", "b\r\ntransfer-encoding: chunked")], "GOAWAY 1"),
        ([("x-a\r\ntransfer-encoding", "chunked")], "GOAWAY 1"),
        ([("Transfer-Encoding", "chunked")], "GOAWAY 1"),
        ([("host", "elsewhere")], "400"),
        ([(":path", "/v1/models")], "RST_STREAM 1"),
    ],
    ids=lambda value: repr(value) if isinstance(value, list) else value,
)
def test_what_http_1_would_read_differently_does_not_leave(gateway: LocalGateway, fields: Fields, answer: str) -> None:
    before = gateway.upstream_stats()["started"], admitted(gateway)
    assert outcome(gateway, fields, BODY) == answer
    assert (gateway.upstream_stats()["started"], admitted(gateway)) == before
    assert outcome(gateway, [("content-length", str(len(BODY)))], BODY) == "200"


def admitted(gateway: LocalGateway) -> int:
    return sum(record["kind"] == "admission" for record in gateway.records())


def test_a_body_that_is_not_as_long_as_it_says_is_recorded(gateway: LocalGateway) -> None:
    def recorded() -> int:
        return sum(record.get("code") == "malformed_http2" for record in gateway.records())

    before = recorded()
    outcome(gateway, [("content-length", "3")], BODY)
    wait_until(lambda: recorded() == before + 1, PATIENCE, "the refusal is recorded")

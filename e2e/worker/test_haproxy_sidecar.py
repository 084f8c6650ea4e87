"""Refusals at the traffic port: the conditions and the answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from openai import AuthenticationError, NotFoundError, OpenAI

from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import chat_request, error_of, send, status_of

PROBE = Path(__file__).parents[1] / "framing" / "probe.py"
BODY = json.dumps({"model": MODEL, "messages": []}).encode()


def test_every_framing_case_gets_its_answer_and_a_closed_connection(folder: Path) -> None:
    # The test uses a separate gateway, because the ledger counts only a part of so many refusals.
    with local_gateway(folder) as gateway:
        host, port = gateway.address.split(":")
        command = [sys.executable, str(PROBE), "--host", host, "--port", port, "--key", KEYS["acme"]]
        probe = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert probe.returncode == 0, probe.stdout + probe.stderr


def test_an_unknown_key_is_a_401(gateway: LocalGateway) -> None:
    stranger = OpenAI(base_url=gateway.base_url, api_key="x" * 40, max_retries=0)
    with stranger, pytest.raises(AuthenticationError):
        stranger.chat.completions.create(model=MODEL, messages=[])


def test_a_missing_key_is_a_401_that_says_how_to_send_one(gateway: LocalGateway) -> None:
    request = b"POST /v1/chat/completions HTTP/1.1\r\nHost: gw\r\nContent-Length: 2\r\n\r\n{}"
    response = send(gateway.address, request)
    assert status_of(response) == 401 and error_of(response)["code"] == "missing_api_key"
    assert b"www-authenticate: bearer" in response.lower()


def test_an_unknown_model_is_a_404_in_openais_error_shape(client: OpenAI) -> None:
    with pytest.raises(NotFoundError) as refusal:
        client.chat.completions.create(model="no-such-model", messages=[])
    assert refusal.value.code == "model_not_found" and refusal.value.param == "model"


def test_a_head_that_is_too_large_is_a_431(gateway: LocalGateway) -> None:
    request = chat_request(BODY, KEYS["acme"], b"X-Large: " + b"x" * 20_000 + b"\r\n")
    assert status_of(send(gateway.address, request)) == 431


def test_a_body_that_is_announced_too_large_is_a_413(gateway: LocalGateway) -> None:
    request = chat_request(b"", KEYS["acme"]).replace(b"Content-Length: 0", b"Content-Length: 33554433")
    assert status_of(send(gateway.address, request)) == 413


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"model":"a","model":"b"}', b"\xff"])
def test_a_body_that_is_not_one_json_object_is_a_400(gateway: LocalGateway, body: bytes) -> None:
    response = send(gateway.address, chat_request(body, KEYS["acme"]))
    assert status_of(response) == 400 and error_of(response)["code"] == "invalid_json"


def test_an_unknown_path_is_a_404_and_another_method_a_405(gateway: LocalGateway) -> None:
    unknown = chat_request(BODY, KEYS["acme"]).replace(b"/v1/chat/completions", b"/v1/nothing")
    assert error_of(send(gateway.address, unknown))["code"] == "unknown_endpoint"
    put = chat_request(BODY, KEYS["acme"]).replace(b"POST ", b"PUT ")
    assert status_of(send(gateway.address, put)) == 405


def test_pipelined_requests_are_answered_in_order(gateway: LocalGateway) -> None:
    first = chat_request(BODY, KEYS["acme"]).replace(b"Connection: close\r\n", b"")
    last = chat_request(b"{}", KEYS["acme"])
    response = send(gateway.address, first + first + last)
    assert response.count(b"HTTP/1.1 200 OK") == 2 and response.count(b"HTTP/1.1 400 ") == 1
    assert response.index(b"HTTP/1.1 400 ") > response.rindex(b"HTTP/1.1 200 OK")


def test_expect_100_continue_is_answered_before_the_body(gateway: LocalGateway) -> None:
    request = chat_request(BODY, KEYS["acme"], b"Expect: 100-continue\r\n")
    head, body = request.split(b"\r\n\r\n", 1)
    response = send(gateway.address, head + b"\r\n\r\n" + body)
    assert status_of(response) in (100, 200) and b"HTTP/1.1 200 OK" in response


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/status", "/checkpoint", "/drain", "/proof/x"])
def test_nothing_of_the_admin_port_can_be_reached_from_the_traffic_port(gateway: LocalGateway, path: str) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer {KEYS['acme']}\r\nConnection: close\r\n\r\n"
    assert error_of(send(gateway.address, request.encode()))["code"] == "unknown_endpoint"


def test_refusals_are_recorded(gateway: LocalGateway) -> None:
    response = send(gateway.address, b"GET / HTTP/1.1\nHost: gw\n\n")
    request_id = response.lower().split(b"x-request-id: ", 1)[1].split(b"\r\n", 1)[0].decode()
    record = next(record for record in gateway.records() if record.get("id") == request_id)
    assert record["kind"] == "rejection" and record["status"] == 400 and record["tenant"] is None


def test_a_flood_of_refusals_is_counted_to_the_last_one(folder: Path) -> None:
    request = b"GET /v1/models HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer wrong\r\n\r\n"
    with local_gateway(folder) as gateway:

        def told() -> int:
            refusals = [record for record in gateway.records() if record["kind"] in ("rejection", "gap")]
            return sum(record.get("count", 1) for record in refusals)

        for _ in range(2500):
            assert status_of(send(gateway.address, request)) == 401
        wait_until(lambda: told() >= 2500, PATIENCE, "every refusal is recorded or counted")
        assert told() == 2500


def test_no_key_is_ever_written_anywhere(gateway: LocalGateway) -> None:
    send(gateway.address, chat_request(BODY, KEYS["acme"]))
    secrets = [*KEYS.values(), gateway.admin_token, (gateway.folder / "signing-key").read_text().strip()]
    asked = [gateway.admin_text(path).encode() for path in ("/metrics", "/status", "/checkpoint")]
    # The worker is stopped, because a file that it writes may be renamed before the test reads it.
    assert gateway.worker is not None and gateway.worker.stop() == 0
    seen = [path for path in gateway.ledger.rglob("*") if path.is_file()] + list(gateway.folder.glob("*.log"))
    texts = [*asked, *(path.read_bytes() for path in seen)]
    gateway.start_worker()
    for secret in secrets:
        assert all(secret.encode() not in text for text in texts)

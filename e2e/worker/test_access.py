"""Access control: keys, allow-lists, signed tokens, web pages, slow clients."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from openai import NotFoundError, OpenAI
from proofgate import _core

from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import answer, chat_request, error_of, read_to_end, recording_upstream, send, status_of

NEW_KEY = "acme-second-key-0123456789abcdef"
ISSUER = "https://login.example.com/"
BODY = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()


def ask(gateway: LocalGateway, key: str) -> bytes:
    return send(gateway.address, chat_request(BODY, key))


def request(gateway: LocalGateway, method: str, path: str, fields: dict[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return send(gateway.address, f"{method} {path} HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n{lines}\r\n".encode())


def tenant(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "keyHashes": [_core.hash_api_key(KEYS[name])], **fields}


def test_a_key_is_rotated_in_its_file_while_the_worker_runs(folder: Path) -> None:
    hashes = folder / "acme-keys"
    hashes.write_text(_core.hash_api_key(KEYS["acme"]) + "\n")
    settings = {"tenants": [{"name": "acme", "keyHashesFile": str(hashes)}]}
    with local_gateway(folder, settings=settings) as gateway:
        assert (status_of(ask(gateway, KEYS["acme"])), status_of(ask(gateway, NEW_KEY))) == (200, 401)
        hashes.write_text(_core.hash_api_key(NEW_KEY) + "\n")
        wait_until(lambda: status_of(ask(gateway, NEW_KEY)) == 200, PATIENCE, "the new key works")
        assert status_of(ask(gateway, KEYS["acme"])) == 401
        incarnations = {record["log"] for record in gateway.records()}
    assert len(incarnations) == 1


def test_records_have_the_name_of_the_key_and_a_name_is_changed_while_the_worker_runs(folder: Path) -> None:
    digest = _core.hash_api_key(KEYS["acme"])
    hashes = folder / "globex-keys"
    hashes.write_text(f"{_core.hash_api_key(KEYS['globex'])} # name=batch\n")
    acme = {"name": "acme", "keys": [{"hash": digest, "name": "ci"}], "endpoints": ["ChatCompletions"]}
    settings = {"tenants": [acme, {"name": "globex", "keyHashesFile": str(hashes)}]}
    with local_gateway(folder, settings=settings) as gateway:
        for key in KEYS.values():
            assert status_of(ask(gateway, key)) == 200
        listed = request(gateway, "GET", "/v1/models", {"Authorization": f"Bearer {KEYS['acme']}"})
        assert (status_of(listed), status_of(ask(gateway, "sk-unknown"))) == (403, 401)
        hashes.write_text(f"{_core.hash_api_key(KEYS['globex'])} # name=nightly\n")

        def names() -> list[tuple[str, str | None]]:
            ask(gateway, KEYS["globex"])
            records = (record for record in gateway.records() if record["kind"] in ("admission", "rejection"))
            return [(record["kind"], record.get("key_name")) for record in records]

        wait_until(lambda: ("admission", "nightly") in names(), PATIENCE, "the new name is recorded")
        found = names()
    assert found[:4] == [("admission", "ci"), ("admission", "batch"), ("rejection", "ci"), ("rejection", None)]


def test_a_tenant_sees_and_uses_only_its_models(folder: Path) -> None:
    models = [{"name": MODEL, "provider": "mock"}, {"name": "org/large:1", "provider": "mock"}]
    tenants = [tenant("acme"), tenant("globex", models=[MODEL])]
    with local_gateway(folder, settings={"models": models, "tenants": tenants}) as gateway:
        with OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"], max_retries=0) as acme:
            assert [model.id for model in acme.models.list()] == [MODEL, "org/large:1"]
            assert acme.models.retrieve("org/large:1").id == "org/large:1"
        with OpenAI(base_url=gateway.base_url, api_key=KEYS["globex"], max_retries=0) as globex:
            assert [model.id for model in globex.models.list()] == [MODEL]
            with pytest.raises(NotFoundError):
                globex.models.retrieve("org/large:1")
            with pytest.raises(NotFoundError):
                globex.chat.completions.create(model="org/large:1", messages=[{"role": "user", "content": "hi"}])


def test_a_tenant_calls_only_its_endpoints(folder: Path) -> None:
    tenants = [tenant("acme", endpoints=["Models"])]
    with local_gateway(folder, settings={"tenants": tenants}) as gateway:
        listed = request(gateway, "GET", "/v1/models", {"Authorization": f"Bearer {KEYS['acme']}"})
        denied = ask(gateway, KEYS["acme"])
    assert status_of(listed) == 200
    assert (status_of(denied), error_of(denied)["code"]) == (403, "endpoint_not_allowed")


def encoded(value: bytes | dict[str, Any]) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def token(key: Ed25519PrivateKey, **claims: Any) -> str:
    """A JSON Web Token (RFC 7519) for acme, signed with EdDSA (RFC 8037)."""
    content = {"iss": ISSUER, "aud": "proofgate", "sub": "build-17", "tenant": "acme", "exp": time.time() + 300}
    signed = f"{encoded({'alg': 'EdDSA', 'typ': 'JWT', 'kid': 'one'})}.{encoded({**content, **claims})}"
    return f"{signed}.{encoded(key.sign(signed.encode()))}"


def test_a_token_is_as_good_as_a_key_and_only_if_everything_about_it_is_right(folder: Path) -> None:
    signer, stranger = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    public = signer.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    key = {"kty": "OKP", "crv": "Ed25519", "kid": "one", "alg": "EdDSA", "use": "sig", "x": encoded(public)}
    (folder / "jwks.json").write_text(json.dumps({"keys": [key]}))
    issuer = {"issuer": ISSUER, "audiences": ["proofgate"], "jwksFile": str(folder / "jwks.json"), "leewaySeconds": 0}
    settings = {"jwt": {"issuers": [issuer]}, "tenants": [{"name": "acme"}, tenant("globex")]}
    with local_gateway(folder, settings=settings) as gateway:
        assert status_of(ask(gateway, token(signer))) == 200
        assert status_of(ask(gateway, KEYS["globex"])) == 200
        for wrong in (
            token(stranger),
            token(signer, exp=time.time() - 10),
            token(signer, aud="others"),
            token(signer, iss="https://elsewhere.example.com/"),
        ):
            assert status_of(ask(gateway, wrong)) == 401
        nobody = ask(gateway, token(signer, tenant="nobody"))
        assert (status_of(nobody), error_of(nobody)["code"]) == (403, "unknown_tenant")
        admitted = [record for record in gateway.records() if record["kind"] == "admission"]
    assert [record["tenant"] for record in admitted] == ["acme", "globex"]


def test_a_web_page_of_an_allowed_origin_may_call_and_another_may_not(folder: Path) -> None:
    page = "https://app.example.com"
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    key = {"Authorization": f"Bearer {KEYS['acme']}"}
    with local_gateway(folder, settings={"cors": {"allowedOrigins": [page]}}) as gateway:
        asked = request(gateway, "OPTIONS", "/v1/chat/completions", {"Origin": page, **preflight})
        strange = request(gateway, "OPTIONS", "/v1/chat/completions", {"Origin": "https://evil.example", **preflight})
        read = request(gateway, "GET", "/v1/models", {"Origin": page, **key})
        head = request(gateway, "HEAD", "/v1/models", {"Origin": page, **key})
    assert status_of(asked) == 204
    assert b"access-control-allow-origin: https://app.example.com\r\n" in asked
    allowed = next(line for line in asked.split(b"\r\n") if line.startswith(b"access-control-allow-headers: "))
    assert {b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"} <= set(allowed.split(b": ")[1].split(b", "))
    assert status_of(strange) == 401
    assert b"access-control-allow-origin" not in strange
    assert status_of(read) == 200
    assert b"access-control-allow-origin: https://app.example.com\r\n" in read
    # A HEAD has the fields of the GET and no content (RFC 9110, 9.3.2).
    assert status_of(head) == 200
    assert head.endswith(b"\r\n\r\n")
    assert length_of(head) == length_of(read) == len(read.split(b"\r\n\r\n", 1)[1])


def test_what_follows_a_preflight_with_a_body_is_never_taken_for_a_request(folder: Path) -> None:
    page = "https://app.example.com"
    hidden = chat_request(BODY, KEYS["acme"])
    preflight = (
        f"OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: gw\r\nOrigin: {page}\r\n"
        f"Access-Control-Request-Method: POST\r\nContent-Length: {len(hidden)}\r\n\r\n"
    ).encode()
    with local_gateway(folder, settings={"cors": {"allowedOrigins": [page]}}) as gateway:
        answers = send(gateway.address, preflight + hidden)
        admitted = [record for record in gateway.records() if record["kind"] == "admission"]
    assert status_of(answers) == 204
    assert answers.count(b"HTTP/1.1 ") == 1
    assert admitted == []


def test_what_a_provider_says_of_limits_and_pages_is_not_passed_on(folder: Path) -> None:
    fields = b"X-RateLimit-Limit-Requests: 7\r\nAccess-Control-Allow-Origin: *\r\nX-Model: small\r\n"
    with recording_upstream(answer(b"{}", head=b"Content-Type: application/json\r\n" + fields)) as upstream:
        provider = {"name": "mock", "type": "OpenAI", "baseURL": f"http://{upstream.url}/v1"}
        with local_gateway(folder, settings={"providers": [provider]}) as gateway:
            told = ask(gateway, KEYS["acme"])
    assert b"x-model: small" in told.lower()
    assert b"ratelimit" not in told.lower()
    assert b"access-control" not in told.lower()


def length_of(response: bytes) -> int:
    return int(response.split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0])


@pytest.mark.parametrize(
    ("part", "setting"),
    [
        pytest.param(b"POST /v1/chat/completions HTTP/1.1\r\nHost: gw\r\n", "clientHeadSeconds", id="head"),
        pytest.param(chat_request(BODY, KEYS["acme"])[:-10], "clientBodySeconds", id="body"),
    ],
)
def test_a_client_that_stops_in_the_middle_gets_a_408_and_its_connection_back(
    folder: Path, part: bytes, setting: str
) -> None:
    with local_gateway(folder, settings={"timeouts": {setting: 0.3}}) as gateway:
        host, port = gateway.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(part)
            answer = read_to_end(connection)
    assert (status_of(answer), error_of(answer)["code"]) == (408, "request_timeout")


def test_bodies_that_would_fill_the_memory_are_turned_away(folder: Path) -> None:
    # Bodies may use only three quarters of it.
    limits = {"bodyBytes": 100_000, "bufferedBytes": 400_000}
    with local_gateway(folder, settings={"limits": limits}) as gateway:
        host, port = gateway.address.rsplit(":", 1)
        waiting = chat_request(b" " * 90_000, KEYS["acme"])
        with contextlib.ExitStack() as stack:
            for _ in range(2):
                connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))
                connection.sendall(waiting[:-1])
            wait_until(lambda: status_of(ask_large(gateway)) == 503, PATIENCE, "their bodies count")
            refused = ask_large(gateway)
        assert error_of(refused)["code"] == "overloaded"
        wait_until(lambda: status_of(ask_large(gateway)) == 200, PATIENCE, "its room is given back")


def ask_large(gateway: LocalGateway) -> bytes:
    padded = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "x" * 80_000}]}).encode()
    return send(gateway.address, chat_request(padded, KEYS["acme"]))

"""A tenant with a key tries to read another tenant's or the gateway's data, or to act in their name."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from proofgate import _core

from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import chat_request, request_id_of, send, status_of

SECRET_MODEL = "globex-alone"
CHAT = "/v1/chat/completions"
REFUSED, OK = frozenset(range(400, 500)), frozenset({200})
OWN = f"Bearer {KEYS['acme']}"
#: A text that imitates a line of the gateway's output, or controls a terminal.
FORGED = "x\nproofgate ready: traffic=forged admin=forged\r\n\x1b]0;forged\x07"


@dataclass(frozen=True)
class Attempt:
    """One request of acme. In its path, `{theirs}` is the id of an exchange of globex, and `{own}` of one of acme."""

    path: str
    method: str = "GET"
    fields: tuple[tuple[str, str], ...] = (("Authorization", OWN),)
    body: bytes = b""
    statuses: frozenset[int] = REFUSED


def asked(model: str = MODEL, **more: Any) -> bytes:
    return json.dumps({"model": model, "messages": [{"role": "user", "content": "hello"}], **more}).encode()


def posting(body: bytes, *more: tuple[str, str], path: str = CHAT, ok: bool = False) -> Attempt:
    fields = (("Authorization", OWN), ("Content-Type", "application/json"), *more)
    return Attempt(path, "POST", fields, body, OK if ok else REFUSED)


def as_somebody(*fields: tuple[str, str]) -> Attempt:
    return Attempt("/v1/receipts/{theirs}", fields=fields)


def responses(**more: Any) -> Attempt:
    return posting(json.dumps({"model": MODEL, "input": "hello", **more}).encode(), path="/v1/responses")


NESTED = b'{"model":"' + MODEL.encode() + b'","messages":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
BASIC = base64.b64encode(f":{KEYS['globex']}".encode()).decode()

ATTEMPTS = (
    # Names of other tenants' data.
    Attempt("/v1/receipts/{theirs}"),
    Attempt("/v1/receipts/{theirs_upper}"),
    Attempt("/v1/receipts/{theirs}%00"),
    Attempt("/v1/receipts/{theirs}%20"),
    Attempt("/v1/receipts/{theirs}/"),
    Attempt("/v1/receipts/{own}/../{theirs}"),
    Attempt("/v1/receipts/{own}%2F..%2F{theirs}"),
    Attempt("/v1/receipts/..%2f..%2fsigning-key"),
    Attempt("/v1/receipts/{theirs}?tenant=globex"),
    Attempt("/v1/receipts/{theirs}?since=1&origin={origin}"),
    Attempt("/v1/receipts/{own}?since=1&origin=..%2F..%2Fsigning-key", statuses=OK),
    Attempt("/v1/receipts"),
    Attempt("/v1/receipts/{theirs}", "POST"),
    Attempt("/v1/receipts/{theirs}", "DELETE"),
    Attempt("/v1/files"),
    Attempt("/v1/files/file-abc/content"),
    Attempt("/v1/batches/batch_abc"),
    Attempt("/v1/responses/resp_abc"),
    Attempt("/v1/conversations/conv_abc"),
    Attempt("/v1/usage", statuses=OK),
    Attempt("/v1/usage?tenant=globex", statuses=OK),
    Attempt("/v1/organization/usage/completions"),
    Attempt(f"/v1/models/{SECRET_MODEL}"),
    # Objects that a provider stores for all callers.
    responses(previous_response_id="resp_abc"),
    responses(conversation="conv_abc"),
    responses(prompt={"id": "pmpt_abc"}),
    responses(background=True),
    responses(input=[{"type": "item_reference", "id": "msg_abc"}]),
    responses(input=[{"id": "msg_abc"}]),
    responses(input=[{"type": None, "id": "msg_abc"}]),
    responses(input=[{"type": "image_generation_call", "id": "ig_abc"}]),
    responses(input=[{"role": "user", "content": [{"type": "input_file", "file_id": "file-abc"}]}]),
    responses(tools=[{"type": "code_interpreter", "container": "cntr_abc"}]),
    responses(tools=[{"type": "file_search", "vector_store_ids": ["vs_abc"]}]),
    posting(asked(messages=[{"role": "assistant", "audio": {"id": "audio_abc"}}, {"role": "user", "content": "?"}])),
    posting(asked(SECRET_MODEL)),
    posting(asked(FORGED)),
    posting(asked("../../v1/files")),
    # Ambiguous bodies, and bodies that are expensive to parse.
    posting(b'{"model":"%s","model":"%s","messages":[]}' % (MODEL.encode(), SECRET_MODEL.encode())),
    posting(b'{"model":"%s","mod\\u0065l":"%s","messages":[]}' % (MODEL.encode(), SECRET_MODEL.encode())),
    posting(b'{"model":"%s","Model":"%s","messages":[]}' % (MODEL.encode(), SECRET_MODEL.encode())),
    posting(b'{"model":"%s","max_tokens":1,"max_tokens":100000,"messages":[]}' % MODEL.encode()),
    posting(asked(max_tokens=-1)),
    posting(asked(n=1e308)),
    posting(b"\xef\xbb\xbf" + asked()),
    posting(asked() + asked(SECRET_MODEL)),
    posting(NESTED),
    posting(gzip.compress(asked(SECRET_MODEL), mtime=0), ("Content-Encoding", "gzip")),
    posting(gzip.compress(b" " * (1 << 24), mtime=0), ("Content-Encoding", "gzip")),
    posting(asked(), ("Transfer-Encoding", "chunked")),
    posting(asked(), ("Content-Length", "1")),
    # Other identities.
    as_somebody(),
    as_somebody(("Authorization", "Bearer ")),
    as_somebody(("Authorization", f"Bearer {_core.hash_api_key(KEYS['globex'])}")),
    as_somebody(("Authorization", f"Bearer {KEYS['globex'].upper()}")),
    as_somebody(("Authorization", f"Bearer {KEYS['globex'][:-1]}")),
    as_somebody(("Authorization", f"Basic {BASIC}")),
    as_somebody(("Authorization", OWN), ("Authorization", f"Bearer {KEYS['globex']}")),
    as_somebody(("Authorization", OWN), ("X-Api-Key", KEYS["globex"])),
    as_somebody(("Authorization", OWN), ("X-Tenant", "globex"), ("X-Proofgate-Tenant", "globex")),
    as_somebody(("Authorization", OWN), ("X_Proofgate_Tenant", "globex"), ("X-Forwarded-User", "globex")),
    as_somebody(("Authorization", OWN), ("Connection", "authorization")),
    as_somebody(("Cookie", f"key={KEYS['globex']}")),
    Attempt(f"/v1/receipts/{{theirs}}?key={KEYS['globex']}", fields=()),
    # The operator's endpoints.
    Attempt("/metrics"),
    Attempt("/status"),
    Attempt("/checkpoint"),
    Attempt("/proof/{theirs}"),
    Attempt("/tenants/limits"),
    Attempt("/ledger/names"),
    Attempt("/drain", "POST"),
    Attempt("/reload", "POST"),
    Attempt("/retirement", "PUT"),
    Attempt("http://169.254.169.254/latest/meta-data/"),
    Attempt("169.254.169.254:80", "CONNECT"),
    # Texts that are written to records or logs: the request is served, and the texts have no effect.
    posting(asked(), ("User-Agent", "\x1b]0;forged\x07")),
    posting(asked(user="globex\nforged", metadata={"session_id": FORGED}), ok=True),
    posting(asked(), ("X-Session-Id", "=cmd|' /C calc'!A0;globex"), ("X-Request-Id", "{theirs}"), ok=True),
)


@dataclass(frozen=True)
class World:
    """A gateway of two tenants, an exchange of each, and the secrets that only globex and the operator may see."""

    gateway: LocalGateway
    own: str
    theirs: str
    secrets: frozenset[str]


def exchange(gateway: LocalGateway, tenant: str, text: str) -> str:
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": text}]}).encode()
    answer = send(gateway.address, chat_request(body, KEYS[tenant]))
    assert status_of(answer) == 200, answer
    return request_id_of(answer)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    tenants = [
        {"name": "acme", "keyHashes": [_core.hash_api_key(KEYS["acme"])], "models": [MODEL]},
        {"name": "globex", "keyHashes": [_core.hash_api_key(KEYS["globex"])]},
    ]
    models = [{"name": MODEL, "provider": "mock"}, {"name": SECRET_MODEL, "provider": "mock"}]
    with local_gateway(tmp_path_factory.mktemp("attempts"), settings={"tenants": tenants, "models": models}) as gateway:
        theirs, own = exchange(gateway, "globex", "a secret"), exchange(gateway, "acme", "hello")
        wait_until(lambda: status_of(receipt(gateway, own, "acme")) == 200, PATIENCE, "its receipt is there")
        facts = [record for record in gateway.records() if record.get("id") == theirs]
        said = {value for record in facts for value in record.values() if isinstance(value, str) and len(value) > 32}
        digest = hashlib.sha256(KEYS["globex"].encode()).hexdigest()
        secrets = {*said, theirs, "globex", digest[:16], KEYS["globex"], "PRIVATE+KEY", gateway.admin_token}
        yield World(gateway, own, theirs, frozenset(secrets))


def receipt(gateway: LocalGateway, request_id: str, tenant: str) -> bytes:
    fields = f"Host: gw\r\nConnection: close\r\nAuthorization: Bearer {KEYS[tenant]}\r\n"
    return send(gateway.address, f"GET /v1/receipts/{request_id} HTTP/1.1\r\n{fields}\r\n".encode())


def sent(world: World, attempt: Attempt) -> bytes:
    """The bytes of the request, with its placeholders replaced."""

    def filled(text: str) -> str:
        names = {"{theirs_upper}": world.theirs.upper(), "{theirs}": world.theirs, "{own}": world.own}
        for name, value in {**names, "{origin}": world.gateway.origin.replace("/", "%2F")}.items():
            text = text.replace(name, value)
        return text

    lines = [f"{attempt.method} {filled(attempt.path)} HTTP/1.1", "Host: gw"]
    if all(name != "Connection" for name, _ in attempt.fields):
        lines.append("Connection: close")
    lines += [f"{name}: {filled(value)}" for name, value in attempt.fields]
    if attempt.body and all(name != "Transfer-Encoding" for name, _ in attempt.fields):
        lines.append(f"Content-Length: {len(attempt.body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + attempt.body


def named(attempt: Attempt) -> str:
    fields = " ".join(name for name, _ in attempt.fields)
    return f"{attempt.method} {attempt.path[:40]} {fields} {attempt.body[:60]!r}"


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=named)
def test_an_attempt_at_what_is_not_its_own_gives_a_tenant_nothing(world: World, attempt: Attempt) -> None:
    request = sent(world, attempt)
    answer = send(world.gateway.address, request)
    assert status_of(answer) in attempt.statuses, answer[:500]
    said = request.decode("latin-1")
    assert [secret for secret in world.secrets if secret in answer.decode("latin-1") and secret not in said] == []
    if status_of(answer) == 200 and attempt.method == "POST":
        assert request_id_of(answer) not in (world.theirs, world.own)


def test_an_exchange_of_anothers_is_as_one_that_nobody_has(world: World) -> None:
    nobodys = f"{world.theirs[:-4]}{'0000' if world.theirs[-4:] != '0000' else '1111'}"
    theirs, none = (receipt(world.gateway, request_id, "acme") for request_id in (world.theirs, nobodys))
    assert status_of(theirs) == 404
    assert told(theirs) == told(none)


def test_a_model_of_anothers_is_as_one_that_there_is_not(world: World) -> None:
    answers = [
        send(world.gateway.address, chat_request(asked(model), KEYS["acme"])) for model in (SECRET_MODEL, "not-there")
    ]
    assert [status_of(answer) for answer in answers] == [404, 404]
    assert told(answers[0]).replace(SECRET_MODEL.encode(), b"") == told(answers[1]).replace(b"not-there", b"")


def test_keys_that_are_none_are_refused_in_the_same_words(world: World) -> None:
    near = KEYS["globex"][:-1] + ("x" if KEYS["globex"][-1] != "x" else "y")
    answers = {told(send(world.gateway.address, chat_request(asked(), key))) for key in (near, "nobodys-key-0123")}
    assert len(answers) == 1


def told(answer: bytes) -> bytes:
    """An answer without the parts that always differ: its id and its date."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"x-request-id:", b"date:"))]
    own = request_id_of(answer).encode()
    return b"\r\n".join(lines) + body.replace(own, b"")


def test_after_all_attempts_the_gateway_serves_and_its_log_says_nothing_that_was_forged(world: World) -> None:
    for attempt in ATTEMPTS:
        send(world.gateway.address, sent(world, attempt))
    assert world.gateway.status()["not_ready"] is None
    assert status_of(receipt(world.gateway, world.theirs, "globex")) == 200
    assert world.gateway.worker is not None
    printed = world.gateway.worker.printed
    assert "forged" not in printed and "\x1b" not in printed and KEYS["globex"] not in printed
    metrics = world.gateway.admin_text("/metrics")
    assert "forged" not in metrics and KEYS["globex"] not in metrics

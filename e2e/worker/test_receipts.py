"""Receipts, end to end: a tenant fetches them with its key, and others verify them."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from anthropic import Anthropic
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from openai import APIStatusError, OpenAI
from proofgate import _core
from proofgate.receipts import (
    ContradictedError,
    EvidenceError,
    Receipt,
    UrlSource,
    Witness,
    WitnessedTransport,
    fetch,
)

from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE

VERIFY = Path(__file__).parents[2] / "examples" / "verify" / "verify.py"
HELLO: list[Any] = [{"role": "user", "content": "hello"}]


def digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def source(gateway: LocalGateway, tenant: str = "acme") -> UrlSource:
    return UrlSource(f"http://{gateway.address}", KEYS[tenant])


def ask(gateway: LocalGateway, text: str = "hello", tenant: str = "acme") -> tuple[str, bytes, bytes]:
    """One exchange: its id, and the bytes of its request and answer."""
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": text}]}).encode()
    request = urllib.request.Request(
        f"{gateway.base_url}/chat/completions",
        body,
        {"Authorization": f"Bearer {KEYS[tenant]}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return answer.headers["x-request-id"], body, answer.read()


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proofgate", *arguments], capture_output=True, text=True, timeout=PATIENCE, cwd=cwd
    )


@pytest.fixture
def witness(gateway: LocalGateway, folder: Path) -> Witness:
    return Witness(gateway.verifying_key, folder / "held")


@pytest.fixture
def transport(witness: Witness) -> Iterator[Any]:
    """The result has no precise type: it is a transport for httpx and httpx2, but derives from neither's class."""
    yield WitnessedTransport(httpx2.HTTPTransport(), witness)


def test_what_openais_client_sends_and_gets_is_shown_by_its_receipts(
    gateway: LocalGateway, witness: Witness, transport: Any
) -> None:
    with OpenAI(
        base_url=gateway.base_url,
        api_key=KEYS["acme"],
        http_client=httpx2.Client(timeout=PATIENCE, transport=transport),
    ) as client:
        whole = client.chat.completions.create(model=MODEL, messages=HELLO)
        assert (whole.choices[0].message.content or "").startswith(f"{MODEL}: token1")
        streamed = client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        assert len(list(streamed)) > 2
        client.models.list()
        with pytest.raises(APIStatusError):
            client.chat.completions.create(model="nobodys", messages=HELLO)
        first, second, refused = transport.verify_all()
    assert first.bodies == second.bodies == ("request", "response")
    assert [record.kind for record in refused.records] == ["rejection"] and refused.bodies == ()
    assert [exchange.status for exchange in transport.exchanges] == [200, 200, 404]
    assert list(witness.newest_checkpoints()) == [gateway.origin]
    assert transport.verify_all() == [], "each is read once"


def test_what_anthropics_client_sends_and_gets_is_shown_by_its_receipts(
    gateway: LocalGateway, witness: Witness
) -> None:
    transport: Any = WitnessedTransport(httpx2.HTTPTransport(), witness, at_once=True)
    with Anthropic(
        base_url=f"http://{gateway.address}",
        api_key=KEYS["acme"],
        http_client=httpx2.Client(timeout=PATIENCE, transport=transport),
    ) as client:
        asked: Any = {"model": MODEL, "max_tokens": 50, "messages": HELLO}
        assert client.messages.create(**asked).content
        with client.messages.stream(**asked) as stream:
            assert stream.get_final_message().content
        for exchange in transport.exchanges:
            assert exchange.error is None and exchange.verified is not None
            assert exchange.verified.bodies == ("request", "response")
    assert len(transport.exchanges) == 2


def test_a_client_of_the_older_httpx_and_one_that_leaves_early_are_witnessed_as_well(
    gateway: LocalGateway, witness: Witness
) -> None:
    transport: Any = WitnessedTransport(httpx.HTTPTransport(), witness)
    with httpx.Client(
        timeout=PATIENCE, transport=transport, headers={"authorization": f"Bearer {KEYS['acme']}"}
    ) as client:
        asked = {"model": MODEL, "messages": [{"role": "user", "content": "mock:stall=2"}], "stream": True}
        with client.stream("POST", f"{gateway.base_url}/chat/completions", json=asked) as answer:
            assert answer.status_code == 200  # no byte of the answer is read
        (left,) = transport.verify_all()
        assert left.bodies == ("request",)
        ended = left.record_of_kind("completion")
        assert ended is not None and ended.facts["outcome"] == "client_disconnect"


def test_the_heartbeats_of_a_stream_are_among_the_bytes_that_are_shown(folder: Path) -> None:
    pauses = ["--tokens", "2", "--token-interval-ms", "400"]
    settings = {"timeouts": {"heartbeatSeconds": 0.05}}
    with local_gateway(folder, settings=settings, upstream_arguments=pauses) as gateway:
        transport: Any = WitnessedTransport(httpx2.HTTPTransport(), Witness(gateway.verifying_key, folder / "held"))
        with httpx2.Client(
            timeout=PATIENCE, transport=transport, headers={"authorization": f"Bearer {KEYS['acme']}"}
        ) as client:
            asked = {"model": MODEL, "messages": HELLO, "stream": True}
            answer = client.post(f"{gateway.base_url}/chat/completions", json=asked)
            assert b": hb\n" in answer.content
            (shown,) = transport.verify_all()
            assert shown.bodies == ("request", "response")


def test_a_changed_answer_is_told_and_the_exchange_is_not_disturbed(gateway: LocalGateway, witness: Witness) -> None:
    class Forging(httpx2.HTTPTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            answer = super().handle_request(request)
            if request.method == "POST":
                forged = b"".join(answer.stream).replace(b"token1", b"poison")  # type: ignore[arg-type]
                answer.stream.close()  # type: ignore[union-attr]
                answer.stream = httpx2.ByteStream(forged)
            return answer

    transport: Any = WitnessedTransport(Forging(), witness)
    with OpenAI(
        base_url=gateway.base_url,
        api_key=KEYS["acme"],
        http_client=httpx2.Client(timeout=PATIENCE, transport=transport),
        max_retries=0,
    ) as client:
        answer = client.chat.completions.create(model=MODEL, messages=HELLO)
        assert "poison" in (answer.choices[0].message.content or "")
        with pytest.raises(ContradictedError, match="not the response that was recorded"):
            transport.verify_all()


def test_the_command_fetches_a_receipt_and_both_verifiers_show_the_bytes(gateway: LocalGateway, folder: Path) -> None:
    request_id, request, response = ask(gateway)
    (folder / "key").write_text(KEYS["acme"] + "\n")
    (folder / "request").write_bytes(request)
    (folder / "response").write_bytes(response)
    (folder / "other").write_bytes(response + b" ")
    (folder / "vkey").write_text(gateway.verifying_key + "\n")
    url = f"http://{gateway.address}"
    fetched = command("receipt", request_id, "--url", url, "--api-key-file", "key", "--out", "receipt", cwd=folder)
    assert fetched.returncode == 0, fetched.stderr
    assert KEYS["acme"] not in fetched.stdout + fetched.stderr + (folder / "receipt").read_text()
    verify = ["verify", "receipt", "--key", "vkey"]
    shown = command(*verify, "--request", "request", "--response", "response", cwd=folder)
    assert shown.returncode == 0 and shown.stdout.endswith("verified\n"), shown
    assert "shown: request is the recorded request, byte for byte" in shown.stdout
    assert "shown: response is the recorded response, byte for byte" in shown.stdout
    alone = command(*verify, cwd=folder)
    assert alone.returncode == 0 and "not shown: the bytes of the response" in alone.stdout
    wrong = command(*verify, "--response", "other", cwd=folder)
    assert wrong.returncode == 40 and "not the response that was recorded" in wrong.stderr
    _, stranger = _core.generate_key(gateway.verifying_key.split("+")[0])
    assert command("verify", "receipt", "--key", stranger, cwd=folder).returncode == 41
    assert command(*verify, "--record", "receipt", "--request", "request", cwd=folder).returncode == 2
    unknown = command("receipt", "no-uuid", "--url", url, "--api-key-file", "key", cwd=folder)
    assert unknown.returncode == 2 and "[unknown_receipt]" in unknown.stderr

    def second(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(VERIFY), "receipt", "--key", "vkey", *arguments],
            capture_output=True, text=True, timeout=PATIENCE, cwd=folder,
        )  # fmt: skip
        assert (done.returncode == 0) == done.stdout.startswith("verified"), done
        return done.stdout + done.stderr

    told = second("--request", "request", "--response", "response")
    assert "request is its request, byte for byte" in told and "response is its response, byte for byte" in told
    assert "not the response that was recorded" in second("--response", "other")


def test_a_receipt_is_had_from_the_next_incarnation_and_from_another_shard_and_the_witness_goes_on(
    folder: Path,
) -> None:
    with local_gateway(folder) as gateway:
        witness = Witness(gateway.verifying_key, folder / "held")
        first, request, response = ask(gateway)
        witness.fetch(source(gateway), first, digest(request), digest(response))
        origin = gateway.origin
        for how in (signal.SIGTERM, signal.SIGKILL):
            killed, *bodies = ask(gateway, "again")
            assert gateway.worker is not None
            gateway.worker.stop(how)
            gateway.start_worker()
            verified = witness.fetch(source(gateway), killed, digest(bodies[0]), digest(bodies[1]))
            assert verified.bodies == ("request", "response")
        verified = witness.fetch(source(gateway), first, digest(request), digest(response))
        assert list(verified.newest_checkpoints) == [origin] != [gateway.origin]
        assert len(witness.newest_checkpoints()) == 2
        # The tenant has moved to another worker on the same volume.
        assert gateway.worker is not None
        gateway.worker.stop(signal.SIGTERM)
        gateway.start_worker(shard=1)
        moved = witness.fetch(source(gateway), first, digest(request), digest(response))
        assert list(moved.newest_checkpoints) == [origin] and "/1/" in gateway.origin
        # An auditor of the ledger accepts this file unchanged.
        code, report = _core.fsck(str(gateway.ledger), gateway.verifying_key, [("held", (folder / "held").read_text())])
        assert code in (0, 10), report


def test_a_volume_that_was_set_back_is_told_by_the_witness(folder: Path) -> None:
    with local_gateway(folder) as gateway:
        witness = Witness(gateway.verifying_key, folder / "held")
        first, *_ = ask(gateway)
        fetch(source(gateway), first)
        assert gateway.worker is not None
        shutil.copytree(gateway.ledger, folder / "before")
        second, *_ = ask(gateway)
        witness.fetch(source(gateway), second)
        gateway.worker.stop(signal.SIGKILL)
        shutil.rmtree(gateway.ledger)
        shutil.copytree(folder / "before", gateway.ledger)
        gateway.start_worker()
        with pytest.raises(ContradictedError, match="was rolled back"):
            witness.fetch(source(gateway), first, timeout_seconds=2)
        with pytest.raises(EvidenceError, match=r"\[unknown_receipt\]"):
            witness.fetch(source(gateway), second)


def test_a_log_that_was_forked_is_told_by_the_witness(gateway: LocalGateway, witness: Witness, folder: Path) -> None:
    """The signer itself lies: the stored checkpoint has another root of the same log, signed with the same key."""
    request_id, *_ = ask(gateway)
    _, text = fetch(source(gateway), request_id)
    secret = (gateway.folder / "signing-key").read_text()
    newest = witness.verify(text).newest_checkpoints[gateway.origin]
    (folder / "held").write_text(_forged(newest.origin, newest.size, secret))
    with pytest.raises(ContradictedError, match="forked or rewritten"):
        witness.verify(text)
    later, *_ = ask(gateway)
    with pytest.raises(ContradictedError, match="forked or rewritten"):
        witness.fetch(source(gateway), later)


def _forged(origin: str, size: int, secret: str) -> str:
    """A checkpoint with the log's key for a log that never existed."""
    seed = base64.b64decode(secret.strip().split("+", 4)[4])[1:]
    key = Ed25519PrivateKey.from_private_bytes(seed)
    public = b"\x01" + key.public_key().public_bytes_raw()
    body = f"{origin}\n{size}\n{base64.b64encode(bytes(32)).decode()}\n"
    key_id = hashlib.sha256(f"{origin}\n".encode() + public).digest()[:4]
    signature = base64.b64encode(key_id + key.sign(body.encode())).decode()
    return f"{body}\n\u2014 {origin} {signature}\n"


def test_a_receipt_whose_records_were_swapped_is_refused(gateway: LocalGateway, witness: Witness) -> None:
    (one, *_), (other, *_) = ask(gateway), ask(gateway)
    first, second = (json.loads(fetch(source(gateway), request_id)[1]) for request_id in (one, other))
    assert Receipt.parse(json.dumps(first)).complete
    mixed = {**first, "records": [first["records"][0], second["records"][1]]}
    with pytest.raises(ContradictedError, match="another exchange"):
        witness.verify(json.dumps(mixed))
    alone = {**first, "records": first["records"][1:]}
    with pytest.raises(ContradictedError, match="one admission"):
        witness.verify(json.dumps(alone))

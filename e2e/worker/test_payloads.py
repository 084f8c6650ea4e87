"""Stored bodies of a tenant: only a holder of the keys can read them."""

from __future__ import annotations

import base64
import json
import re
import secrets
import shutil
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from proofgate import _core

from e2e.commands import proofgate
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.held_stream import held_stream
from e2e.worker.raw_http import chat_request, error_of, send, status_of

MOST = 65536
QUESTION = "where did Ada bury the treasure of Kidd"
RETENTION_KEY_NAME = "proofgate.dev/local/keeping"


def settings(folder: Path) -> dict[str, Any]:
    """Settings of a gateway that stores the bodies of acme, but not those of globex."""
    keys = folder / "shred-keys"
    keys.mkdir(parents=True)
    for tenant in KEYS:
        (keys / tenant).write_text(base64.b64encode(secrets.token_bytes(32)).decode() + "\n")
    tenants = [{"name": tenant, "keyHashes": [_core.hash_api_key(key)]} for tenant, key in KEYS.items()]
    return {
        "ledger": {
            "payloads": {"mode": "Stored", "maxBytes": MOST},
            "shredKeysDirectory": str(keys),
            "checkpointIntervalSeconds": 0.1,
        },
        "tenants": [
            {**tenant, "payloads": "Committed"} if tenant["name"] == "globex" else tenant for tenant in tenants
        ],
    }


@dataclass(frozen=True)
class Said:
    """The bytes that a client sent and received."""

    id: str
    request: bytes
    response: bytes


def body_of(prompt: str, stream: bool = False) -> bytes:
    return json.dumps({"model": MODEL, "messages": [{"role": "user", "content": prompt}], "stream": stream}).encode()


def ask(gateway: LocalGateway, body: bytes, tenant: str = "acme") -> Said:
    raw = send(gateway.address, chat_request(body, KEYS[tenant]))
    assert status_of(raw) == 200, raw[:500]
    head, answer = raw.split(b"\r\n\r\n", 1)
    if b"transfer-encoding: chunked" in head.lower():
        chunks, answer = answer, b""
        while chunks:
            size, rest = chunks.split(b"\r\n", 1)
            answer, chunks = answer + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
            if int(size, 16) == 0:
                break
    request_id = re.search(rb"(?i)^x-request-id: (\S+)", head, re.MULTILINE)
    assert request_id
    return Said(request_id[1].decode().strip(), body, answer)


def shown(gateway: LocalGateway, request_id: str, ledger: Path | None = None) -> _core.StoredExchange:
    found: list[_core.StoredExchange] = []

    def covered() -> bool:
        try:
            exchange = _core.stored_payload(
                str(ledger or gateway.ledger),
                gateway.verifying_key,
                request_id,
                str(gateway.folder / "shred-keys"),
            )
        except _core.LedgerError as error:
            assert error.code in {"record_not_covered", "no_such_exchange"}, error
            return False
        found.append(exchange)
        return exchange.end is not None

    wait_until(covered, PATIENCE, "a checkpoint covers the exchange")
    return found[-1]


def metric(gateway: LocalGateway, series: str) -> float:
    text = gateway.admin_text("/metrics")
    return float(next(line for line in text.splitlines() if line.startswith(series)).split()[-1])


def fsck(gateway: LocalGateway, *more: str) -> int:
    keys = ["--key", gateway.verifying_key, "--shred-keys", str(gateway.folder / "shred-keys")]
    return proofgate("ledger", "fsck", str(gateway.ledger), *keys, *more).returncode


def on_the_volume(gateway: LocalGateway, said: bytes) -> bool:
    return any(said in path.read_bytes() for path in gateway.ledger.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def storing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGateway]:
    folder = tmp_path_factory.mktemp("payloads")
    with local_gateway(folder, settings=settings(folder)) as gateway:
        yield gateway


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_what_was_said_is_read_back_byte_for_byte_and_stands_nowhere_in_clear(
    storing: LocalGateway, stream: bool, tmp_path: Path
) -> None:
    said = ask(storing, body_of(QUESTION, stream))
    exchange = shown(storing, said.id)
    assert (exchange.request, exchange.response) == (said.request, said.response)
    assert exchange.end is not None
    assert json.loads(exchange.end)["payloads"] == {"request": "stored", "response": "stored"}
    for clear in (b"treasure", said.response[-40:], said.response[:40]):
        assert not on_the_volume(storing, clear)
    where = ["--ledger", str(storing.ledger), "--key", storing.verifying_key]
    where += ["--shred-keys", str(storing.folder / "shred-keys")]
    out = tmp_path / "answer"
    assert proofgate("ledger", "payload", "show", said.id, *where, "--response", "--out", str(out)).returncode == 0
    assert out.read_bytes() == said.response and out.stat().st_mode & 0o777 == 0o600
    assert proofgate("ledger", "payload", "show", said.id, *where, "--request").stdout.encode() == said.request
    assert f"{len(said.request)} bytes" in proofgate("ledger", "payload", "show", said.id, *where).stdout
    everything = list(_core.StoredPayloads(str(storing.ledger), storing.verifying_key, where[-1]))
    assert said.response in [one.response for one in everything]
    assert metric(storing, "proofgate_payload_stored_bytes_total") >= len(said.request) + len(said.response)


def test_what_is_too_long_and_whose_is_not_to_be_stored_is_not(storing: LocalGateway) -> None:
    long = ask(storing, body_of(QUESTION + "x" * MOST))
    exchange = shown(storing, long.id)
    assert exchange.request is None and exchange.response == long.response
    assert exchange.no_request is not None and exchange.no_request[0] == "payload_not_stored"
    assert "too_large" in exchange.no_request[1]
    said = ask(storing, body_of(QUESTION), "globex")
    exchange = shown(storing, said.id)
    assert exchange.request is None and exchange.response is None
    assert exchange.end is not None and "payloads" not in json.loads(exchange.end)
    where = ["--ledger", str(storing.ledger), "--key", storing.verifying_key]
    where += ["--shred-keys", str(storing.folder / "shred-keys")]
    refused = proofgate("ledger", "payload", "show", said.id, *where, "--request")
    assert refused.returncode == 1 and "[payload_not_stored]" in refused.stderr


def test_a_worker_killed_in_the_middle_leaves_the_request_and_claims_no_answer(folder: Path) -> None:
    with local_gateway(folder, settings=settings(folder)) as gateway:
        body = body_of(QUESTION + " mock:stall=3", stream=True)
        host, port = gateway.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(chat_request(body, KEYS["acme"]))
            head = b""
            while b"data:" not in head:
                head += connection.recv(4096)
            found = re.search(rb"(?i)^x-request-id: (\S+)", head, re.MULTILINE)
            assert found and gateway.worker is not None
            log = gateway.ledger / "0" / gateway.origin.rsplit("/", 1)[-1]
            wait_until((log / "payload-index").exists, PATIENCE, "the request is stored")
            wait_until(
                lambda: metric(gateway, "proofgate_payload_stored_bytes_total") == len(body), PATIENCE, "and counted"
            )
            gateway.worker.stop(signal.SIGKILL)
        gateway.start_worker()
        exchange = shown(gateway, found[1].decode().strip())
        assert exchange.end is not None and json.loads(exchange.end)["kind"] == "aborted"
        assert exchange.request == body and exchange.response is None
        assert exchange.no_response is not None and exchange.no_response[0] == "payload_not_stored"
        assert fsck(gateway) == 0


def test_an_exchange_that_outlasts_its_log_has_its_bodies_beside_its_admission(folder: Path) -> None:
    chosen = settings(folder)
    chosen["ledger"]["rotation"] = {"seconds": 1}
    with held_stream() as (url, release), ThreadPoolExecutor(1) as client:
        chosen["providers"] = [{"name": "mock", "type": "OpenAI", "baseURL": url}]
        with local_gateway(folder, settings=chosen) as gateway:
            asked = client.submit(ask, gateway, body_of(QUESTION, stream=True))
            wait_until(lambda: asked.done() or gateway.status()["in_flight"] == 1, PATIENCE, "the stream is under way")
            admitted = next(record["log"] for record in gateway.records() if record["kind"] == "admission")
            wait_until(lambda: gateway.status()["incarnation"] != admitted, PATIENCE, "the next log is in service")
            release.set()
            said = asked.result(PATIENCE)
            # The worker is stopped, because a busy machine cannot read a new log each second.
            assert gateway.worker is not None and gateway.worker.stop() == 0
            assert_is_beside_its_admission(gateway, said)
            assert fsck(gateway) == 0


def assert_is_beside_its_admission(gateway: LocalGateway, said: Said) -> None:
    exchange = shown(gateway, said.id)
    assert exchange.end is not None
    end = json.loads(exchange.end)
    assert end["incarnation"] == Path(exchange.directory).name
    assert (exchange.request, exchange.response) == (said.request, said.response)
    assert [path.parent.name for path in gateway.ledger.rglob("payloads")] == [end["incarnation"]]


def test_while_they_cannot_be_written_their_tenants_are_refused_and_others_served(folder: Path) -> None:
    with local_gateway(folder, settings=settings(folder)) as gateway:
        log = gateway.ledger / "0" / gateway.origin.rsplit("/", 1)[-1]
        (log / "payloads").mkdir()
        first = ask(gateway, body_of(QUESTION))
        raw = send(gateway.address, chat_request(body_of(QUESTION), KEYS["acme"]))
        assert (status_of(raw), error_of(raw)["code"]) == (503, "payloads_unavailable")
        ask(gateway, body_of(QUESTION), "globex")
        wait_until(lambda: metric(gateway, "proofgate_payload_writer_failed") == 1, PATIENCE, "the failure shows")
        assert metric(gateway, "proofgate_payload_refusals_total") == 1
        assert metric(gateway, 'proofgate_payloads_not_stored_total{reason="failed"}') == 2
        (log / "payloads").rmdir()
        end = shown(gateway, first.id).end
        assert end is not None and json.loads(end)["payloads"] == {"request": "failed", "response": "failed"}


def test_what_was_erased_or_shredded_opens_nowhere_and_everything_verifies(folder: Path) -> None:
    with local_gateway(folder, settings=settings(folder)) as gateway:
        erased, shredded = ask(gateway, body_of(QUESTION)), ask(gateway, body_of(QUESTION, stream=True))
        assert gateway.worker is not None and gateway.worker.stop() == 0
        signing, verifying = _core.generate_key(RETENTION_KEY_NAME)
        (folder / "retention-key").write_text(signing)
        retention = ["--state", str(folder / "holds"), "--ledger-key", gateway.verifying_key]
        retention += ["--signing-key", str(folder / "retention-key")]
        assert proofgate("ledger", "hold", "begin", *retention).returncode == 0
        frames = next(gateway.ledger.rglob("payloads")).read_bytes()
        why = ["--override-minimum", "--reason", "asked for", "--yes"]
        done = proofgate("ledger", "erase", "--ledger", str(gateway.ledger), *retention, "--id", erased.id, *why)
        assert done.returncode == 0, done.stderr
        left = next(gateway.ledger.rglob("payloads")).read_bytes()
        first = 32 + len(erased.request) + 16
        assert frames[32:first] not in left and frames[first:] != left[first:]
        exchange = shown(gateway, erased.id)
        for why_not in (exchange.no_request, exchange.no_response):
            assert why_not is not None and why_not[0] == "salt_erased"
        backup = folder / "backup"
        shutil.copytree(gateway.ledger, backup)
        assert shown(gateway, shredded.id, backup).response == shredded.response
        keeping = ["--keeping-key", verifying]
        assert fsck(gateway, *keeping) == 0
        (folder / "shred-keys" / "acme").unlink()
        for volume in (gateway.ledger, backup):
            exchange = shown(gateway, shredded.id, volume)
            assert exchange.no_response is not None and exchange.no_response[0] == "shred_key_missing"
        out = ["--out", str(folder), "--key", gateway.verifying_key]
        for said in (erased, shredded):
            assert proofgate("ledger", "prove", said.id, "--ledger", str(gateway.ledger), *out).returncode == 0
            proof, record = folder / f"{said.id}.completion.tlog-proof", folder / f"{said.id}.completion.json"
            checked = proofgate("verify", str(proof), "--record", str(record), "--key", gateway.verifying_key)
            assert checked.returncode == 0, checked.stderr

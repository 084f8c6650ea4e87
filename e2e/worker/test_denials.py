"""A denied request is complete evidence: its sender, its model and its content; and no denial is missing."""

from __future__ import annotations

import base64
import json
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proofgate import _core
from proofgate.receipts import UrlSource, fetch

from e2e.auditing import ask_and_wait
from e2e.commands import proofgate
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE
from e2e.worker.raw_http import chat_request, request_id_of, send, status_of

VERIFY = Path(__file__).parents[2] / "examples" / "verify" / "verify.py"
SECRET = "bluebird"
RULE = {"id": "codename", "reason": "It names a project.", "literals": [SECRET], "score": 100, "action": "Block"}
POLICY = {"packs": [], "rules": [RULE], "threshold": 100}


def settings(**ledger: Any) -> dict[str, Any]:
    return {"policy": POLICY, "ledger": {"checkpointIntervalSeconds": 0.1, **ledger}}


def body_of(text: str) -> bytes:
    session = {"session_id": "session-7"}
    return json.dumps(
        {"model": MODEL, "metadata": session, "user": "ada", "messages": [{"role": "user", "content": text}]}
    ).encode()


def deny(gateway: LocalGateway, body: bytes, tenant: str = "acme") -> str:
    """Sends a request that the rules deny; returns its id."""
    denied = send(gateway.address, chat_request(body, KEYS[tenant]))
    assert status_of(denied) == 403, denied[:500]
    return request_id_of(denied)


def record_of(gateway: LocalGateway, request_id: str) -> dict[str, Any]:
    [record] = [record for record in gateway.records() if record.get("id") == request_id]
    assert record["kind"] == "rejection"
    return record


def run(*arguments: str | Path) -> str:
    done = proofgate(*arguments)
    assert done.returncode == 0, done
    return done.stdout


@contextmanager
def storing(folder: Path, **more: Any) -> Iterator[tuple[LocalGateway, Path]]:
    """A gateway that stores bodies, and the folder of its shred keys."""
    keys = folder / "shred-keys"
    keys.mkdir(parents=True)
    for tenant in KEYS:
        (keys / tenant).write_text(base64.b64encode(secrets.token_bytes(32)).decode() + "\n")
    ledger = {"payloads": {"mode": "Stored", **more}, "shredKeysDirectory": str(keys)}
    with local_gateway(folder, settings=settings(**ledger)) as gateway:
        yield gateway, keys


def test_the_receipt_of_a_denied_request_opens_to_the_bytes_that_were_sent(folder: Path) -> None:
    sent, other = folder / "sent.json", folder / "other.json"
    sent.write_bytes(body_of(f"The plan of {SECRET}."))
    other.write_bytes(body_of("The plan of nothing."))
    with local_gateway(folder, settings=settings()) as gateway:
        request_id = deny(gateway, sent.read_bytes())
        record = record_of(gateway, request_id)
        source = UrlSource(f"http://{gateway.address}", KEYS["acme"])
        _, text = fetch(source, request_id, PATIENCE)
        key = gateway.verifying_key
    receipt = folder / "receipt.json"
    receipt.write_text(text)
    told = run("verify", receipt, "--key", key, "--request", sent)
    assert "is the recorded request, byte for byte" in told
    assert f"the denied request of tenant acme to /v1/chat/completions for {MODEL} was recorded" in told
    assert proofgate("verify", receipt, "--key", key, "--request", other).returncode == 40
    for body, code in ((sent, 0), (other, 1)):
        command = [sys.executable, str(VERIFY), str(receipt), "--key", key, "--request", str(body)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == code, done
    assert (record["model"], record["endpoint"]) == (MODEL, "/v1/chat/completions")
    assert record["key"] == _core.hash_api_key(KEYS["acme"]).removeprefix("sha256:")[:8]
    assert record["attribution"]["session"] == "session-7" and record["attribution"]["end_user"]
    assert (record["policy"]["rules"], record["policy"]["message"]) == (["codename"], "messages[0]")
    assert SECRET not in json.dumps(record)


def test_other_refusals_keep_the_small_record(folder: Path) -> None:
    with local_gateway(folder, settings=settings()) as gateway:
        for key, model, status in (("x" * 40, MODEL, 401), (KEYS["acme"], "nobodys", 404)):
            body = json.dumps({"model": model, "messages": []}).encode()
            assert status_of(send(gateway.address, chat_request(body, key))) == status
        refused = [record for record in gateway.records() if record["kind"] == "rejection"]
    full = {"tenant_seq", "key", "model", "request", "salt", "payload", "attribution"}
    assert len(refused) == 2 and all(not full & record.keys() for record in refused)


def test_admitted_and_denied_requests_have_numbers_without_a_gap_also_behind_a_kill(folder: Path) -> None:
    with local_gateway(folder, settings=settings()) as gateway:
        assert gateway.worker is not None
        ids = []
        for killed in (True, False):
            for _ in range(3):
                ids.append(deny(gateway, body_of(SECRET)))
                ask_and_wait(gateway, 1)
            if killed:
                gateway.worker.stop(signal.SIGKILL)
                gateway.start_worker()
        assert gateway.worker.stop() == 0
        records, key, ledger = gateway.records(), gateway.verifying_key, gateway.ledger
    assert set(ids) <= {record["id"] for record in records if record["kind"] == "rejection"}, "each was answered"
    by_log: dict[str, list[int]] = {}
    for record in records:
        if record.get("tenant") == "acme" and "tenant_seq" in record:
            by_log.setdefault(record["log"], []).append(record["tenant_seq"])
    assert len(by_log) == 2
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in by_log.values()), by_log
    run("ledger", "fsck", ledger, "--key", key)


def test_an_export_shows_that_no_denial_is_missing(folder: Path) -> None:
    with local_gateway(folder, settings=settings()) as gateway:
        assert gateway.worker is not None
        request_id = deny(gateway, body_of(SECRET))
        ask_and_wait(gateway, 1)
        deny(gateway, body_of(SECRET))
        assert gateway.worker.stop() == 0
        key, ledger = gateway.verifying_key, gateway.ledger
    index, made = folder / "index", folder / "export"
    run("audit", "index", "--ledger", ledger, "--ledger-key", key, "--index", index)
    [row] = json.loads(run("audit", "exchanges", "--index", index, "--json", "--id", request_id))["exchanges"]
    assert (row["model"], row["session"], row["tenant_seq"]) == (MODEL, "session-7", 1)
    assert row["key"] == _core.hash_api_key(KEYS["acme"]).removeprefix("sha256:")[:8]
    run("audit", "export", "--index", index, "--ledger", ledger, "--tenant", "acme", "--out", made)
    told = run("audit", "verify-export", made, "--key", key)
    assert "shown: requests 1 to 3 of acme" in told and told.endswith("verified\n")


def test_the_body_of_a_denied_request_is_stored_where_bodies_are(folder: Path) -> None:
    body = body_of(f"The plan of {SECRET}.")
    with storing(folder) as (gateway, keys):
        request_id = deny(gateway, body)
        record = record_of(gateway, request_id)
        assert gateway.worker is not None and gateway.worker.stop() == 0
        ledger, key = gateway.ledger, gateway.verifying_key
    assert record["payload"] == "queued" and record["shred_key"]
    exchange = _core.stored_payload(str(ledger), key, request_id, str(keys))
    assert exchange.request == body
    assert exchange.no_response is not None
    assert not any(b"The plan of" in path.read_bytes() for path in ledger.rglob("*") if path.is_file())
    run("ledger", "fsck", ledger, "--key", key, "--shred-keys", keys)


def test_a_body_that_is_too_long_to_be_stored_is_denied_and_committed_to_all_the_same(folder: Path) -> None:
    with storing(folder, maxBytes=4096) as (gateway, _):
        record = record_of(gateway, deny(gateway, body_of(SECRET + " " * 8192)))
    assert record["payload"] == "too_large" and record["request"]


def test_the_log_of_a_worker_names_the_address_of_a_refused_key_and_never_the_key(folder: Path) -> None:
    wrong = "x" * 40
    with local_gateway(folder, settings=settings()) as gateway:
        assert status_of(send(gateway.address, chat_request(body_of("hi"), wrong))) == 401
        assert gateway.worker is not None
        gateway.worker.wait_for_line(r"refused the keys of 1 request \(401\) from 127\.0\.0\.1 \(1\)")
        assert wrong not in gateway.worker.printed
        assert all("127.0.0.1" not in json.dumps(record) for record in gateway.records())

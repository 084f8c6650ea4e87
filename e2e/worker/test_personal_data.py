"""The client's address and the end user's name are in no record, unless the configuration enables them."""

from __future__ import annotations

import ipaddress
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from proofgate.receipts import UrlSource, fetch

from e2e.auditing import signed
from e2e.commands import proofgate
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import chat_request, request_id_of, send, status_of
from e2e.worker.test_denials import POLICY, SECRET, VERIFY
from e2e.worker.test_ownership import ROUTING_KEY, SIGNATURE

USER = "alice@example.com"
BOTH = {"recordClientAddress": True, "recordEndUser": True}
#: The expected status of each kind of request.
STATUSES = {"admitted": 200, "denied": 403, "refused": 401, "unknown": 404}


def settings(**ledger: Any) -> dict[str, Any]:
    return {"policy": POLICY, "ledger": {"checkpointIntervalSeconds": 0.1, **ledger}}


def body(text: str, model: str = MODEL, user: str = USER) -> bytes:
    return json.dumps({"model": model, "user": user, "messages": [{"role": "user", "content": text}]}).encode()


def ask(gateway: LocalGateway, before: bytes = b"") -> dict[str, str]:
    """Sends a request of each kind after the bytes `before`; returns the ids."""
    requests = {
        "admitted": chat_request(body("hi"), KEYS["acme"]),
        "denied": chat_request(body(f"The plan of {SECRET}."), KEYS["acme"]),
        "refused": chat_request(body("hi"), "x" * 40),
        "unknown": chat_request(body("hi", "nobodys"), KEYS["acme"]),
    }
    answers = {kind: send(gateway.address, before + request) for kind, request in requests.items()}
    assert {kind: status_of(answer) for kind, answer in answers.items()} == STATUSES
    return {kind: request_id_of(answer) for kind, answer in answers.items()}


def first_records(gateway: LocalGateway, ids: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The first record of each request."""
    found = {record["id"]: record for record in gateway.records() if record["kind"] in ("admission", "rejection")}
    return {kind: found[request_id] for kind, request_id in ids.items()}


def proxied(address: str) -> bytes:
    """A load balancer's PROXY v2 header for a client at an address."""
    client = ipaddress.ip_address(address).packed
    unique_id = f"{ROUTING_KEY}:*".encode()
    payload = client + bytes(len(client)) + bytes(4) + b"\x05" + len(unique_id).to_bytes(2, "big") + unique_id
    family = b"\x11" if len(client) == 4 else b"\x21"
    return SIGNATURE + b"\x21" + family + len(payload).to_bytes(2, "big") + payload


def test_without_being_asked_for_no_record_has_an_address_or_a_name(folder: Path) -> None:
    with local_gateway(folder, settings=settings()) as gateway:
        records = first_records(gateway, ask(gateway))
        assert all(records[kind]["attribution"].keys() == {"end_user"} for kind in ("admitted", "denied"))
        files = [path for path in gateway.ledger.rglob("*") if path.is_file()]
        assert files and not any(USER.encode() in path.read_bytes() for path in files)
        assert all("client_address" not in record for record in gateway.records())


def test_admitted_and_denied_requests_have_both_and_other_refusals_the_address(folder: Path) -> None:
    with local_gateway(folder, settings=settings(**BOTH)) as gateway:
        ids = ask(gateway)
        records = first_records(gateway, ids)
        assert {record["client_address"] for record in records.values()} == {"127.0.0.1"}
        for kind in ("admitted", "denied"):
            said = records[kind]["attribution"]
            assert said["end_user_name"] == USER and said["end_user"]
        assert all("attribution" not in records[kind] for kind in ("refused", "unknown"))
        for kind in ("admitted", "denied"):
            _, text = fetch(UrlSource(f"http://{gateway.address}", KEYS["acme"]), ids[kind], PATIENCE)
            (folder / "receipt.json").write_text(text)
            key = gateway.verifying_key
            verified = proofgate("verify", folder / "receipt.json", "--key", key)
            assert verified.returncode == 0, verified
            command = [sys.executable, str(VERIFY), str(folder / "receipt.json"), "--key", key]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
            assert done.returncode == 0, done


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8:1:2::7"])
def test_behind_a_load_balancer_the_address_is_the_clients_and_whole(folder: Path, address: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "routing-key").write_text(f"{ROUTING_KEY}\n")
    proxy = {"proxyProtocol": {"routingKeyFile": str(folder / "routing-key")}}
    with local_gateway(folder, settings=settings(recordClientAddress=True) | proxy) as gateway:
        records = first_records(gateway, ask(gateway, proxied(address)))
    assert {record["client_address"] for record in records.values()} == {address}
    assert all("end_user_name" not in record.get("attribution", {}) for record in records.values())


def test_a_running_worker_starts_and_stops_to_record_them(folder: Path) -> None:
    with local_gateway(folder, settings=settings()) as gateway:
        seen = []
        for wanted in (BOTH, {}):
            gateway.settings = settings(**wanted)
            gateway.write_configuration()
            gateway.admin_text("/reload", method="POST", token=gateway.admin_token)
            record = first_records(gateway, ask(gateway))["admitted"]
            seen.append(("client_address" in record, "end_user_name" in record["attribution"]))
    assert seen == [(True, True), (False, False)]


def test_an_index_shows_who_asked(folder: Path) -> None:
    with local_gateway(folder, settings=settings(**BOTH)) as gateway:
        ids = ask(gateway)
        wait_until(lambda: signed(gateway) >= len(gateway.records()), PATIENCE, "all is under a checkpoint")
        assert gateway.worker is not None and gateway.worker.stop() == 0
        ledger, key = gateway.ledger, gateway.verifying_key
    index = folder / "index"
    done = proofgate("audit", "index", "--same-volume", "--ledger", ledger, "--ledger-key", key, "--index", index)
    assert done.returncode == 0, done.stderr
    done = proofgate("audit", "exchanges", "--index", index, "--json")
    rows = {row["id"]: row for row in json.loads(done.stdout)["exchanges"]}
    told = {kind: (rows[one]["client_address"], rows[one]["end_user_name"]) for kind, one in ids.items()}
    assert told == {
        "admitted": ("127.0.0.1", USER),
        "denied": ("127.0.0.1", USER),
        "refused": ("127.0.0.1", None),
        "unknown": ("127.0.0.1", None),
    }

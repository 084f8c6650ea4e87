"""A volume for each worker: its records are only on this volume, and stay on it when the worker is removed."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from proofgate import _core

from e2e import evidence
from e2e.kubernetes import PATIENCE, Namespace, Object, volume_directory, wait_until
from e2e.operations import Gateway
from e2e.tests import fleet
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.traffic import ask, wait_reachable

NAME = "own-volumes"
VOLUME = {"mode": "PerWorker", "storageClassName": "lab-shared", "size": "1Gi"}
OWNED = f"app.kubernetes.io/managed-by=proofgate-operator,proofgate.dev/gateway={NAME}"


def manifest() -> Object:
    """Two workers, each with one tenant placed on it."""
    found = fleet.gateway(NAME, 2, TENANTS[:2], ledger={"volume": VOLUME}, loadBalancer=fleet.ONE_BALANCER)
    for number, tenant in enumerate(found["spec"]["tenants"]):
        tenant["placement"] = number
    return found


def claim(worker: int) -> str:
    """The name of a worker's claim."""
    return f"ledger-{NAME}-worker-{worker}"


def claims(namespace: Namespace) -> dict[str, str]:
    """The uid of each of the gateway's claims by its name."""
    found = namespace.list("persistentvolumeclaims", OWNED)
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in found}


def records(namespace: Namespace, worker: int) -> list[dict[str, Any]]:
    """Every record on a worker's volume, oldest first."""
    return evidence.records(volume_directory(namespace, claim(worker)))


def admitted(namespace: Namespace, worker: int) -> set[str]:
    """The tenants whose requests were admitted by the ledger on a worker's volume."""
    return {record["tenant"] for record in records(namespace, worker) if record["kind"] == "admission"}


@pytest.fixture
def own(namespace: Namespace) -> Iterator[Gateway]:
    """The settled gateway, with two new claims."""
    namespace.apply(*map(fleet.secret, TENANTS[:2]), manifest())
    found = Gateway(namespace, NAME)
    try:
        found.wait_settled(2)
        wait_reachable(namespace, NAME)
        yield found
    finally:
        found.delete()
        found.forget()


def serve_both(own: Gateway) -> None:
    """Lets each worker serve a request of the tenant that is placed on it."""
    for worker, tenant in enumerate(TENANTS[:2]):

        def recorded(worker: int = worker, tenant: str = tenant) -> bool:
            assert ask(own.namespace, NAME, key_of(tenant)) == 200
            return tenant in admitted(own.namespace, worker)

        wait_until(recorded, PATIENCE, f"{tenant} is served by worker {worker}")


def test_each_worker_records_what_it_served_on_a_volume_of_its_own(namespace: Namespace, own: Gateway) -> None:
    serve_both(own)
    assert volume_directory(namespace, claim(0)) != volume_directory(namespace, claim(1))
    for worker in range(2):
        directory = volume_directory(namespace, claim(worker))
        shards = {entry.name for entry in directory.iterdir() if entry.is_dir() and entry.name.isdigit()}
        assert shards == {str(worker)}, "a worker's volume holds its shard alone"
        assert (directory / "ledger-name").read_text().strip() == f"proofgate.dev/{namespace.name}/{NAME}"
        served = [record for record in records(namespace, worker) if record["kind"] in ("admission", "completion")]
        kinds = [record["kind"] for record in served]
        assert 0 < kinds.count("admission") == kinds.count("completion")


def test_a_worker_that_comes_back_finds_its_volume_and_continues_its_chain(namespace: Namespace, own: Gateway) -> None:
    serve_both(own)
    before = claims(namespace)
    assert set(before) == {claim(0), claim(1)}
    own.scale(1)
    assert claims(namespace) == before
    left = records(namespace, 1)
    assert left[-1]["kind"] == "seal"
    assert ask(namespace, NAME, key_of(TENANTS[1])) == 200
    assert TENANTS[1] in admitted(namespace, 0), "the worker that stayed serves the tenant of the one that left"
    own.scale(2)
    assert claims(namespace) == before
    now = records(namespace, 1)
    assert now[: len(left)] == left
    opened = now[len(left)]
    assert opened["kind"] == "open"
    assert opened["predecessor"]["incarnation"] == left[-1]["log"] and opened["predecessor"]["sealed"]
    serve_both(own)


def held(namespace: Namespace) -> dict[str, str]:
    """The checkpoints that the operator stores, by shard."""
    found = namespace.get("configmap", f"{NAME}-checkpoints") or {}
    return dict(found.get("data") or {})


def test_a_worker_does_not_serve_from_a_volume_that_was_set_back(namespace: Namespace, own: Gateway) -> None:
    serve_both(own)
    wait_until(lambda: set(held(namespace)) == {"0", "1"}, PATIENCE, "a checkpoint of each worker is held")
    own.scale(1)
    public = (namespace.get("ggw", NAME) or {})["status"]["ledger"]["verifyingKey"]
    for worker in range(2):
        against = [("held", held(namespace)[str(worker)])]
        code, report = _core.fsck(str(volume_directory(namespace, claim(worker))), public, against)
        assert code == 0 and json.loads(report)["against"] == 1, report
    wait_until(
        lambda: int(held(namespace)["1"].split("\n")[1]) > 1, PATIENCE, "what a worker signed before it left is held"
    )
    volume = volume_directory(namespace, claim(1))
    (volume / "1").rename(volume / "elsewhere")
    namespace.kubectl("scale", f"ggw/{NAME}", "--replicas=2")
    pod = f"{NAME}-worker-1"
    wait_until(
        lambda: "behind the checkpoint held outside" in own.said(pod), PATIENCE, "the worker says why it does not start"
    )
    wait_until(lambda: own.restarts(pod) > 0, PATIENCE, "it is started again, in vain")
    assert not namespace.is_ready(NAME, 2)
    shutil.rmtree(volume / "1", ignore_errors=True)
    (volume / "elsewhere").rename(volume / "1")
    own.wait_settled(2)
    serve_both(own)


def test_an_auditor_follows_workers_with_a_volume_each_and_names_what_is_changed_on_one(
    namespace: Namespace, own: Gateway
) -> None:
    key, _ = _core.generate_key("audit.example.com/own-volumes")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own-key"}, "stringData": {"signing-key": key}}
    namespace.apply(secret)
    auditor = {
        "signingKeySecretRef": {"name": "own-key"},
        "storage": {"storageClassName": "lab-shared"},
        "beatSeconds": 1,
        "cpu": "100m",
    }
    own.patch({"auditor": auditor})

    def audit() -> tuple[str, str]:
        found = namespace.condition(NAME, "Audited")
        return found.get("status", ""), found.get("reason", "")

    try:
        wait_until(lambda: audit() == ("True", "NothingFound"), PATIENCE, "the ledger is audited")
        serve_both(own)
        own.scale(1)
        assert audit() == ("True", "NothingFound"), "a worker that has left is no finding"
        own.scale(2)
        serve_both(own)
        assert audit() == ("True", "NothingFound")
        segment = max(volume_directory(namespace, claim(1)).glob("1/*/*.seg"))
        with segment.open("r+b") as file:
            file.seek(file.read().index(b'"completion"'))
            file.write(b"!")
        wait_until(
            lambda: audit() == ("False", "LedgerInvalid"), PATIENCE, "the condition says that a record was changed"
        )
    finally:
        own.patch({"auditor": None})
        namespace.delete("secret", "own-key")


READER_KEY = "officer-reader-key-0123456789"


def answered(address: str, path: str) -> dict[str, Any]:
    """The index's answer to the officer; empty if there is no index yet."""
    request = urllib.request.Request(f"http://{address}/v1/{path}", headers={"Authorization": f"Bearer {READER_KEY}"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            found: dict[str, Any] = json.load(answer)
    except (OSError, urllib.error.HTTPError):
        return {}
    return found


def test_an_index_has_the_exchanges_of_workers_with_a_volume_each_and_keeps_them_when_one_leaves(
    namespace: Namespace, own: Gateway
) -> None:
    key, _ = _core.generate_key("audit.example.com/own-volumes-index")
    readers = json.dumps({_core.hash_api_key(READER_KEY): {"name": "officer", "all": True}})
    for name, entry, text in (("own-index-key", "signing-key", key), ("own-readers", "readers.json", readers)):
        namespace.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {entry: text}})
    auditor = {
        "signingKeySecretRef": {"name": "own-index-key"},
        "storage": {"storageClassName": "lab-shared"},
        "beatSeconds": 1,
        "cpu": "100m",
        "memory": "512Mi",
        "index": {"readersSecretRef": {"name": "own-readers", "key": "readers.json"}},
    }
    serve_both(own)
    own.patch({"auditor": auditor})
    try:
        wait_until(
            lambda: namespace.condition(NAME, "Audited").get("reason") == "NothingFound",
            PATIENCE,
            "the ledger is audited",
        )
        with namespace.forwarded(f"pod/{NAME}-auditor-0", 9091) as address:

            def listed() -> dict[str, str]:
                """One exchange of each tenant."""
                return {row["tenant"]: row["id"] for row in answered(address, "exchanges").get("exchanges", ())}

            wait_until(lambda: set(listed()) == set(TENANTS[:2]), PATIENCE, "the exchanges of both workers are indexed")
            own.scale(1)
            left = listed()[TENANTS[1]]
            receipt = answered(address, f"exchanges/{left}/receipt")
            assert receipt["id"] == left and receipt["complete"], "the copy has what the worker that left served"
    finally:
        own.patch({"auditor": None})
        namespace.delete("secret", "own-index-key")
        namespace.delete("secret", "own-readers")

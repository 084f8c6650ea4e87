"""GitOps tools prune by labels and annotations: objects to keep have no tracking label and ask to be kept."""

import asyncio
import copy
from typing import Any

import pytest

from proofgate_operator.build.naming import KEEP_ANNOTATIONS
from tests import auditing, retention
from tests.fake_cluster import FakeCluster
from tests.gateways import manifest, user_secrets
from tests.operators import loop, operator
from tests.test_attached_tenants import World

INSTANCE = "app.kubernetes.io/instance"
LEDGER = {"volume": {"storageClassName": "lab", "size": "1Gi"}, "shredKeys": {}}
KEPT = {
    ("Secret", "demo-ledger"),
    ("Secret", "demo-shred-keys"),
    ("PersistentVolumeClaim", "demo-wal"),
    ("PersistentVolumeClaim", "demo-auditor"),
    ("PersistentVolumeClaim", "demo-retention"),
}


def world(**ledger: Any) -> World:
    found = World(
        auditor=auditing.AUDITOR,
        keeping=retention.KEEPING,
        ledger={**LEDGER, **ledger},
    )
    found.cluster.put(auditing.key_secret())
    found.cluster.put(retention.key_secret())
    found.settle()
    return found


def kept(cluster: FakeCluster) -> dict[tuple[str, str], dict[str, Any]]:
    """The operator's objects without an owner."""
    return {
        (kind, name): live["metadata"]
        for (kind, _, name), live in cluster.owned().items()
        if not live["metadata"].get("ownerReferences")
    }


def as_before(metadata: dict[str, Any]) -> None:
    """Make an object as an earlier release created it."""
    metadata["labels"][INSTANCE] = "demo"
    for name in KEEP_ANNOTATIONS:
        metadata["annotations"].pop(name, None)


def test_whatever_has_no_owner_bears_nobodys_tracking_label_and_asks_to_be_kept() -> None:
    found = kept(world().cluster)
    assert found.keys() >= KEPT
    for metadata in found.values():
        assert INSTANCE not in metadata["labels"]
        assert metadata["annotations"].items() >= KEEP_ANNOTATIONS.items()
    assert KEEP_ANNOTATIONS == {
        "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
        "helm.sh/resource-policy": "keep",
        "kustomize.toolkit.fluxcd.io/prune": "disabled",
    }


def test_what_goes_with_the_gateway_has_an_owner_and_asks_for_nothing() -> None:
    cluster = world().cluster
    owned = [live["metadata"] for live in cluster.owned().values() if live["metadata"].get("ownerReferences")]
    assert owned and all(metadata["labels"][INSTANCE] == "demo" for metadata in owned)
    assert not any(KEEP_ANNOTATIONS.keys() & metadata.get("annotations", {}).keys() for metadata in owned)


def test_objects_of_a_release_before_lose_the_label_and_are_left_in_peace_after() -> None:
    found = world()
    data = copy.deepcopy(found.cluster.find("Secret", "demo-ledger")["data"])
    for metadata in kept(found.cluster).values():
        as_before(metadata)
    found.start_anew()
    found.settle()
    for metadata in kept(found.cluster).values():
        assert INSTANCE not in metadata["labels"]
        assert metadata["annotations"].items() >= KEEP_ANNOTATIONS.items()
    assert found.cluster.find("Secret", "demo-ledger")["data"] == data


def test_a_label_that_somebody_set_since_is_left_to_them() -> None:
    found = world()
    for metadata in kept(found.cluster).values():
        metadata["labels"][INSTANCE] = "somebody's-app"
    found.start_anew()
    found.settle()
    assert all(metadata["labels"][INSTANCE] == "somebody's-app" for metadata in kept(found.cluster).values())


@pytest.mark.parametrize("name", ["demo-ledger", "demo-shred-keys"])
def test_a_secret_of_somebody_else_is_not_touched(name: str) -> None:
    cluster = FakeCluster()
    cluster.put(manifest(ledger=LEDGER))
    for secret in user_secrets().values():
        assert secret
        cluster.put(secret)
    foreign = {"name": name, "namespace": "team", "uid": "theirs", "labels": {INSTANCE: "demo"}}
    cluster.put({"apiVersion": "v1", "kind": "Secret", "metadata": foreign, "data": {}})
    before = copy.deepcopy(cluster.find("Secret", name)["metadata"])
    asyncio.run(loop(operator(cluster)).reconcile())
    assert cluster.find("Secret", name)["metadata"] == before


def test_evidence_of_a_worker_each_is_kept_too_also_where_the_sets_controller_makes_the_claim() -> None:
    volume = {"mode": "PerWorker", "storageClassName": "lab", "size": "1Gi"}
    found = world(volume=volume)
    (template,) = found.cluster.find("StatefulSet", "demo-worker")["spec"]["volumeClaimTemplates"]
    assert INSTANCE not in template["metadata"]["labels"]
    assert template["metadata"]["annotations"] == KEEP_ANNOTATIONS
    assert ("PersistentVolumeClaim", "ledger-demo-worker-0") in kept(found.cluster)


def test_a_policy_that_lets_the_evidence_go_asks_nobody_to_keep_it() -> None:
    volume = {**LEDGER["volume"], "retainPolicy": "Delete"}
    found = World(ledger={"volume": volume})
    found.settle()
    claim = found.cluster.find("PersistentVolumeClaim", "demo-wal")["metadata"]
    assert claim["ownerReferences"] and claim["labels"][INSTANCE] == "demo"
    assert not KEEP_ANNOTATIONS.keys() & claim["annotations"].keys()

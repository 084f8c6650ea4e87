"""Each worker's own volume: created before its worker, kept after it, monitored like the shared one."""

import copy
from typing import Any

import pytest

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.plan.observed_state import Ref
from tests.fake_cluster import FakeCluster
from tests.gateways import SPEC, UID
from tests.moving_world import MovingWorld
from tests.test_convergence import new_cluster, reconcile_once, settle
from tests.world import World, kinds

Manifest = dict[str, Any]
OWN = {"mode": "PerWorker", "storageClassName": "lab-block", "size": "1Gi"}
CLAIM = "PersistentVolumeClaim"


def world(replicas: int = 2, volume: Manifest | None = None, **changes: Any) -> World:
    return World(replicas=replicas, ledger={"volume": {**OWN, **(volume or {})}}, **changes)


def bound(found: World, phase: str = "Bound") -> World:
    for ref, child in found.children.items():
        if ref.kind == CLAIM and child:
            child["status"] = {"phase": phase}
    return found


def name(ordinal: int) -> str:
    return f"ledger-demo-worker-{ordinal}"


def cluster_of(replicas: int, **volume: Any) -> FakeCluster:
    found = new_cluster(replicas=replicas, ledger={"volume": {**OWN, **volume}})
    settle(found)
    return found


def scale(cluster: FakeCluster, replicas: int) -> None:
    cluster.find("GovernanceGateway", "demo")["spec"]["replicas"] = replicas
    settle(cluster)


def claims(cluster: FakeCluster) -> dict[str, Manifest]:
    return {key[2]: found for key, found in cluster.objects.items() if key[0] == CLAIM}


def test_claims_have_the_names_that_the_set_looks_for_and_are_written_before_it() -> None:
    settled = world().settle()
    live = settled.child("StatefulSet", "demo-worker")
    [template] = live["spec"]["volumeClaimTemplates"]
    mounts = live["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    assert template["metadata"]["name"] in {mount["name"] for mount in mounts}
    for number in range(2):
        assert settled.child(CLAIM, f"{template['metadata']['name']}-demo-worker-{number}")
    fresh = world()
    fresh.carry_out(fresh.plan())
    written = [manifest["kind"] for manifest in fresh.plan().manifests_to_apply]
    assert "StatefulSet" in written and CLAIM not in written[written.index("StatefulSet") :]


def test_a_claim_that_the_sets_controller_makes_first_bears_the_gateways_labels() -> None:
    settled = world().settle()
    [template] = settled.child("StatefulSet", "demo-worker")["spec"]["volumeClaimTemplates"]
    made = {**template, "kind": CLAIM, "metadata": {**template["metadata"], "name": name(0)}}
    settled.children[Ref(CLAIM, name(0))] = made
    assert settled.condition(ConditionType.CONFIG_VALID)[1] == "Valid"
    assert [manifest["metadata"]["name"] for manifest in settled.plan().manifests_to_apply] == [name(0)]


def test_a_claim_of_somebody_else_is_not_taken() -> None:
    taken = world()
    taken.children[Ref(CLAIM, name(1))] = {"kind": CLAIM, "metadata": {"name": name(1)}, "spec": {}}
    assert not taken.plan().has_writes
    assert taken.condition(ConditionType.CONFIG_VALID)[2].startswith(f"{CLAIM} {name(1)}: exists")


def test_a_volume_that_a_user_adds_cannot_hide_the_ledger() -> None:
    added = {"podTemplate": {"volumes": [{"name": "ledger", "emptyDir": {}}]}}
    assert world(worker=added).condition(ConditionType.CONFIG_VALID)[1] == "PodTemplateInvalid"


def test_growth_reaches_every_claim_and_leaves_the_set_as_it_was_made() -> None:
    settled = world().settle()
    live = settled.child("StatefulSet", "demo-worker")
    # The API server adds these fields to a template.
    live["spec"]["volumeClaimTemplates"][0] |= {"status": {"phase": "Pending"}, "kind": CLAIM}
    settled.manifest["spec"]["ledger"]["volume"]["size"] = "2Gi"
    before = copy.deepcopy(live["spec"])
    settled.settle()
    assert settled.child("StatefulSet", "demo-worker")["spec"] == before
    for number in range(2):
        requests = settled.child(CLAIM, name(number))["spec"]["resources"]["requests"]
        assert requests == {"storage": "2Gi"}


def test_a_worker_that_comes_after_the_growth_gets_the_new_size() -> None:
    settled = world().settle()
    settled.manifest["spec"]["ledger"]["volume"]["size"] = "2Gi"
    settled.settle()
    settled.manifest["spec"]["replicas"] = 3
    settled.settle()
    assert settled.child(CLAIM, name(2))["spec"]["resources"]["requests"] == {"storage": "2Gi"}


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_scaling_down_keeps_the_claim_and_scaling_up_takes_it_up(policy: str) -> None:
    cluster = cluster_of(3, retainPolicy=policy)
    before = {key: found["metadata"]["uid"] for key, found in claims(cluster).items()}
    scale(cluster, 1)
    assert {key: found["metadata"]["uid"] for key, found in claims(cluster).items()} == before
    scale(cluster, 3)
    assert {key: found["metadata"]["uid"] for key, found in claims(cluster).items()} == before


def test_a_claim_of_a_worker_that_was_scaled_away_follows_the_retain_policy_and_keeps_its_size() -> None:
    cluster = cluster_of(2, retainPolicy="Delete")
    scale(cluster, 1)
    kept = claims(cluster)[name(1)]
    assert kept["metadata"]["ownerReferences"][0]["uid"] == UID
    volume = {**OWN, "retainPolicy": "Retain", "size": "2Gi"}
    cluster.find("GovernanceGateway", "demo")["spec"]["ledger"]["volume"] = volume
    settle(cluster)
    assert all("ownerReferences" not in found["metadata"] for found in claims(cluster).values())
    sizes = {key: found["spec"]["resources"]["requests"]["storage"] for key, found in claims(cluster).items()}
    assert sizes == {name(0): "2Gi", name(1): "1Gi"}
    scale(cluster, 2)
    assert claims(cluster)[name(1)]["spec"]["resources"]["requests"]["storage"] == "2Gi"


def test_a_kept_claim_that_a_user_deletes_is_not_made_again() -> None:
    cluster = cluster_of(2)
    scale(cluster, 1)
    cluster.find(CLAIM, name(1))["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    settle(cluster)
    cluster.remove(CLAIM, name(1))
    settle(cluster)
    assert set(claims(cluster)) == {name(0)}
    assert "WaitingForDeletion" not in str(cluster.find("GovernanceGateway", "demo")["status"])


def test_neither_the_sets_controller_nor_the_operator_deletes_a_claim() -> None:
    settled = world().settle()
    policy = settled.child("StatefulSet", "demo-worker")["spec"]["persistentVolumeClaimRetentionPolicy"]
    assert policy == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    settled.manifest["spec"]["replicas"] = 1
    assert CLAIM not in {ref.kind for ref in settled.plan().objects_to_delete}


def test_a_second_worker_that_stands_in_for_the_only_one_has_a_claim_of_its_own() -> None:
    moving = MovingWorld(1, volumes="PerWorker")
    assert set(moving.claims) == {name(0)}
    moving.use_image("worker:two")
    moving.settle()
    assert set(moving.claims) == {name(0), name(1)}
    assert moving.condition(ConditionType.STORAGE_BOUND).reason == "Bound"


def test_every_claim_has_to_be_bound_and_the_message_names_those_that_are_not() -> None:
    settled = bound(world(3).settle())
    assert settled.condition(ConditionType.STORAGE_BOUND) == (
        "True",
        "Bound",
        "all 3 PersistentVolumeClaims are bound, ledger-demo-worker-0 to ledger-demo-worker-2",
    )
    settled.child(CLAIM, name(0))["status"] = {"phase": "Pending"}
    settled.child(CLAIM, name(2))["status"] = {"phase": "Lost"}
    status, reason, message = settled.condition(ConditionType.STORAGE_BOUND)
    assert (status, reason) == ("False", "ClaimLost")
    assert f"{name(2)} is Lost" in message and f"{name(0)} is Pending" in message and name(1) not in message


def test_a_worker_that_is_about_to_come_is_no_claim_that_is_missing() -> None:
    settled = bound(world(2).settle())
    settled.manifest["spec"]["replicas"] = 3
    assert settled.condition(ConditionType.STORAGE_BOUND)[1] == "Bound"
    settled.settle()
    assert settled.condition(ConditionType.STORAGE_BOUND)[1] == "ClaimPending"
    settled.children[Ref(CLAIM, name(2))] = None
    assert settled.condition(ConditionType.STORAGE_BOUND)[1] == "ClaimNotMade"


def test_a_set_that_somebody_scaled_to_nothing_is_reconciled_all_the_same() -> None:
    settled = bound(world(2).settle())
    settled.child("StatefulSet", "demo-worker")["spec"]["replicas"] = 0
    assert settled.condition(ConditionType.STORAGE_BOUND)[1] == "Bound"
    assert settled.settle().child("StatefulSet", "demo-worker")["spec"]["replicas"] == 2


def test_a_claim_that_no_worker_mounts_is_not_waited_for() -> None:
    settled = bound(world(2).settle())
    settled.manifest["spec"]["replicas"] = 1
    settled.child(CLAIM, name(1))["status"] = {"phase": "Lost"}
    assert settled.condition(ConditionType.STORAGE_BOUND)[0] == "True"


def test_many_claims_that_wait_are_counted_and_not_all_named() -> None:
    waiting = bound(world(20).settle(), "Pending")
    message = waiting.condition(ConditionType.STORAGE_BOUND)[2]
    assert message.endswith("; and 15 more") and len(message) < 1024


def test_the_worst_step_of_growing_claims_is_told() -> None:
    settled = bound(world(3).settle())
    for number, step in enumerate(("Resizing", "NodeResizeError")):
        settled.child(CLAIM, name(number))["status"]["conditions"] = [{"type": step, "status": "True"}]
    status, reason, message = settled.condition(ConditionType.STORAGE_BOUND)
    assert (status, reason) == ("True", "ResizeFailed")
    assert name(0) in message and name(1) in message and name(2) not in message


@pytest.mark.parametrize("volumes", ["Shared", "PerWorker"])
def test_pods_that_cannot_be_placed_are_replaced_although_their_claims_wait_for_them(volumes: str) -> None:
    """With a class that binds at first use, a claim stays Pending until its pod has a node."""
    volume = {"mode": volumes, "storageClassName": "late"}
    found = bound(World(replicas=2, ledger={"volume": volume}).settle(), "Pending")
    live = found.child("StatefulSet", "demo-worker")
    live["metadata"]["generation"] = 2
    live["status"] = {"observedGeneration": 2, "replicas": 2, "updateRevision": "new"}
    found.pods = [
        {
            "metadata": {"name": f"demo-worker-{number}", "labels": {"controller-revision-hash": "old"}},
            "status": {
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
            },
        }
        for number in range(2)
    ]
    assert [pod["metadata"]["name"] for pod in found.plan().pods_to_replace] == ["demo-worker-1"]


@pytest.mark.parametrize(
    ("replicas", "limited", "told"), [(2, True, True), (1, True, False), (2, False, False)]
)
def test_that_limits_are_each_workers_own_is_said_where_it_matters(
    replicas: int, limited: bool, told: bool
) -> None:
    tenants = copy.deepcopy(SPEC["tenants"])
    if limited:
        tenants[0]["keyLimits"] = {"tokensPerDay": 1000}
    status, reason, message = world(replicas, tenants=tenants).settle().condition(ConditionType.CONFIG_VALID)
    assert (status, reason) == ("True", "Valid")
    assert ("each worker counts limits on its own" in message) is told
    shared = World(replicas=replicas, tenants=tenants).settle().condition(ConditionType.CONFIG_VALID)
    assert "each worker counts" not in shared[2]


def test_claims_that_outlived_a_gateway_are_taken_up_by_one_of_its_name() -> None:
    before = world(3).settle()
    successor = world(2)
    successor.manifest["metadata"]["uid"] = "another"
    for number in range(3):
        successor.children[Ref(CLAIM, name(number))] = before.child(CLAIM, name(number))
    successor.children[Ref("Secret", "demo-ledger")] = before.child("Secret", "demo-ledger")
    assert CLAIM not in kinds(successor.plan().manifests_to_apply)
    assert successor.condition(ConditionType.CONFIG_VALID)[0] == "True"


def test_claims_of_workers_that_were_scaled_away_cost_no_request() -> None:
    cluster = cluster_of(4)
    scale(cluster, 2)
    before = len(cluster.requests)
    reconcile_once(cluster)
    asked = [text for text in cluster.requests[before:] if CLAIM in text]
    assert asked == []


def test_pods_mount_no_claim_that_they_share() -> None:
    pod = world().settle().child("StatefulSet", "demo-worker")["spec"]["template"]["spec"]
    assert not [volume for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
    assert Ref(CLAIM, "demo-wal") not in world().settle().children

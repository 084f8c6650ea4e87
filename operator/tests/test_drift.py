"""The operator does not repeat a write that the API server or webhooks undo."""

from collections.abc import Callable
from typing import Any

import pytest

from proofgate_operator.handlers.apply_history import ApplyHistory
from tests.fake_cluster import FakeCluster
from tests.operators import loop, operator
from tests.test_convergence import new_cluster, reconcile_once, settle, status

Manifest = dict[str, Any]
MOUNTED = {
    "podTemplate": {
        "volumes": [{"name": "ca", "emptyDir": {}}],
        "volumeMounts": [{"name": "ca", "mountPath": "/ca", "readOnly": False}],
    }
}


def container(found: Manifest) -> Manifest:
    first: Manifest = found["spec"]["template"]["spec"]["containers"][0]
    return first


def without_what_is_empty(found: Manifest) -> None:
    """Drop empty fields, as `omitempty` does in a typed API."""
    for mount in container(found)["volumeMounts"]:
        if mount.get("readOnly") is False:
            del mount["readOnly"]


def rewritten_resources(found: Manifest) -> None:
    """Change resources, as GKE Autopilot's webhook does."""
    container(found)["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}}


def with_a_sidecar(found: Manifest) -> None:
    """Add a sidecar to a template, as a service mesh's webhook does."""
    containers = found["spec"]["template"]["spec"]["containers"]
    if containers[-1]["name"] != "sidecar":
        containers.append({"name": "sidecar", "image": "mesh", "resources": {"limits": {"cpu": 1}}})


def of_workloads(change: Callable[[Manifest], None]) -> Callable[[Manifest], None]:
    return lambda found: change(found) if found["kind"] in ("StatefulSet", "Deployment") else None


def patches(cluster: FakeCluster) -> int:
    return sum(write.startswith("PATCH StatefulSet") for write in cluster.writes)


@pytest.mark.parametrize("admit", [without_what_is_empty, rewritten_resources, with_a_sidecar])
def test_an_object_that_the_api_server_spells_otherwise_is_written_once(
    admit: Callable[[Manifest], None],
) -> None:
    cluster = new_cluster(worker=MOUNTED)
    cluster.admit = of_workloads(admit)
    writes = ApplyHistory()
    for _ in range(20):
        reconcile_once(cluster, writes)
        cluster.run_controllers()
    assert patches(cluster) == 1
    assert status(cluster)["Progressing"] == ("False", "Settled")
    # A new operator does not remember the write: it tries once, without effect.
    version = cluster.find("StatefulSet", "demo-worker")["metadata"]["resourceVersion"]
    writes = ApplyHistory()
    for _ in range(20):
        reconcile_once(cluster, writes)
    assert patches(cluster) == 2
    assert cluster.find("StatefulSet", "demo-worker")["metadata"]["resourceVersion"] == version


async def test_a_write_without_an_effect_does_not_bring_the_next_reconcile() -> None:
    cluster = new_cluster(worker=MOUNTED)
    cluster.admit = of_workloads(without_what_is_empty)
    found = loop(operator(cluster))
    for _ in range(20):
        await found.reconcile()
        cluster.run_controllers()
    successor = loop(operator(cluster))
    before = patches(cluster)
    assert await successor.reconcile() > 1
    assert patches(cluster) == before + 1


def test_what_somebody_changes_after_the_webhook_is_still_set_right() -> None:
    cluster = new_cluster()
    cluster.admit = of_workloads(rewritten_resources)
    writes = ApplyHistory()
    for _ in range(5):
        reconcile_once(cluster, writes)
        cluster.run_controllers()
    container(cluster.find("StatefulSet", "demo-worker"))["image"] = "somebody:else"
    reconcile_once(cluster, writes)
    assert container(cluster.find("StatefulSet", "demo-worker"))["image"] == "worker:test"


def test_whoever_undoes_a_write_each_time_is_named_and_met_once_a_minute() -> None:
    cluster = new_cluster()
    settle(cluster)
    writes = ApplyHistory()
    before = patches(cluster)
    found = cluster.find("StatefulSet", "demo-worker")
    found["metadata"]["managedFields"] = [{"manager": "proofgate-operator"}, {"manager": "night-scaler"}]
    # Each reconcile is twelve seconds after the last.
    for _ in range(50):
        cluster.find("StatefulSet", "demo-worker")["spec"]["revisionHistoryLimit"] = 10
        reconcile_once(cluster, writes)
        cluster.run_controllers()
    assert patches(cluster) - before <= 5 + 50 * 12 // 60
    conditions = cluster.find("GovernanceGateway", "demo")["status"]["conditions"]
    (told,) = [found for found in conditions if found["type"] == "Progressing"]
    assert (told["status"], told["reason"]) == ("False", "Contested")
    assert "StatefulSet demo-worker: spec.revisionHistoryLimit" in told["message"]
    assert "by night-scaler" in told["message"]
    # Without further changes, the next write lasts, and the condition is no longer Contested.
    for _ in range(60):
        reconcile_once(cluster, writes)
        cluster.run_controllers()
    assert cluster.find("StatefulSet", "demo-worker")["spec"]["revisionHistoryLimit"] == 3
    assert status(cluster)["Progressing"] == ("False", "Settled")


SIDECAR = {
    "podTemplate": {
        "sidecars": [
            {
                "name": "sidecar",
                "image": "sidecar:test",
                "resources": {"limits": {"cpu": 1, "memory": "1024Mi", "hugepages-2Mi": "1024Mi"}},
            }
        ]
    }
}


def with_canonical_quantities(found: Manifest) -> None:
    """Rewrite quantities, as the API server does."""
    for one in found["spec"]["template"]["spec"]["containers"]:
        if one["name"] == "sidecar":
            one["resources"] = {"limits": {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "1Gi"}}


def test_quantities_that_the_api_server_spells_otherwise_are_no_drift_not_even_for_a_new_operator() -> None:
    cluster = new_cluster(worker=SIDECAR)
    cluster.admit = of_workloads(with_canonical_quantities)
    settle(cluster)
    found = cluster.find("StatefulSet", "demo-worker")["spec"]["template"]["spec"]["containers"]
    assert found[-1]["resources"]["limits"]["cpu"] == "1"
    before = patches(cluster)
    for _ in range(5):
        reconcile_once(cluster, ApplyHistory())
    assert patches(cluster) == before

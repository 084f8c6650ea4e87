"""Only the operator replaces pods, one at a time, on a real StatefulSet controller."""

import base64
from typing import Any

import pytest

from tests.controlplane.namespaces import Namespace, gateway_manifest
from tests.controlplane.server import wait_for

pytestmark = pytest.mark.controlplane


def pods(namespace: Namespace) -> dict[str, dict[str, Any]]:
    found = namespace.find("pod", "app.kubernetes.io/component=worker")
    return {pod["metadata"]["name"]: pod for pod in found}


def images(namespace: Namespace) -> dict[str, str]:
    return {name: pod["spec"]["containers"][0]["image"] for name, pod in pods(namespace).items()}


@pytest.fixture
def settled(namespace: Namespace) -> Namespace:
    namespace.give_secrets()
    namespace.start()
    namespace.apply(gateway_manifest(worker={"image": "worker:one"}))
    namespace.settle()
    return namespace


def test_a_new_image_reaches_one_worker_and_the_next_when_that_one_is_ready(settled: Namespace) -> None:
    settled.apply(gateway_manifest(worker={"image": "worker:two"}))
    first = {"demo-worker-0": "worker:one", "demo-worker-1": "worker:two"}
    wait_for(lambda: images(settled) == first, "the highest worker is replaced")
    assert settled.wait_condition("Progressing", "True", "Rolling")
    assert settled.condition("Ready")[0] == "True"
    untouched = pods(settled)["demo-worker-0"]["metadata"]["uid"]
    reconciled = settled.reconciles()
    settled.annotate("ggw", "demo", look="again")
    settled.reconciled(reconciled)
    assert pods(settled)["demo-worker-0"]["metadata"]["uid"] == untouched
    settled.settle()
    assert set(images(settled).values()) == {"worker:two"}
    status = settled.there("ggw", "demo")["status"]
    assert status["updatedReplicas"] == 2
    assert [shard["phase"] for shard in status["shards"]] == ["Ready", "Ready"]


def test_a_worker_that_serves_is_ready_once_the_operator_says_that_haproxy_has_found_it(
    settled: Namespace,
) -> None:
    serving = {
        "phase": "Running",
        "conditions": [{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "False"}],
    }
    settled.plane.api.patch_status("pod", "demo-worker-0", serving, settled.name)

    def conditions() -> dict[str, str]:
        found = pods(settled)["demo-worker-0"]["status"]["conditions"]
        return {one["type"]: one["status"] for one in found}

    wait_for(lambda: "proofgate.dev/load-balanced" in conditions(), "the operator says so")
    assert conditions() == {
        "ContainersReady": "True",
        "Ready": "False",
        "proofgate.dev/load-balanced": "True",
    }, "the kubelet's conditions stay"


def test_a_new_worker_takes_its_tenants_in_stages_and_nothing_is_left_of_them(settled: Namespace) -> None:
    settled.scale(3)
    wait_for(lambda: "demo-worker-2" in pods(settled), "the new worker's pod exists")

    def weights() -> str:
        data = settled.there("secret", "demo-tenants")["data"]
        return base64.b64decode(data["weights.map"]).decode()

    assert "worker-2 34\n" in weights(), "the stage starts before the worker is ready"
    settled.make_ready()
    settled.wait_condition("Progressing", "True", "TenantsMoving")
    settled.settle()
    assert "worker-2 " not in weights()
    annotations = settled.there("secret", "demo-tenants")["metadata"]["annotations"]
    assert annotations["proofgate.dev/members"] == "3" and "proofgate.dev/joining" not in annotations


def test_a_set_that_its_controller_rolled_becomes_the_operators_to_roll(settled: Namespace) -> None:
    assert settled.operator
    settled.operator.stop()
    before = {name: pod["metadata"]["uid"] for name, pod in pods(settled).items()}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    settled.patch("sts", "demo-worker", {"spec": {"updateStrategy": strategy}})
    settled.start()

    def taken_over() -> bool:
        return bool(settled.there("sts", "demo-worker")["spec"]["updateStrategy"] == {"type": "OnDelete"})

    wait_for(taken_over, "the operator has set the update strategy")
    settled.settle()
    assert {name: pod["metadata"]["uid"] for name, pod in pods(settled).items()} == before
    settled.rest()
    written, reconciled = settled.writes(), settled.reconciles()
    settled.annotate("ggw", "demo", look="again")
    settled.reconciled(reconciled)
    settled.settle()
    # Only status and events may be written.
    news = {write.split()[1].split("/")[0] for write in settled.writes()[len(written) :]}
    assert news <= {"governancegateways", "events"}, "unnecessary writes"

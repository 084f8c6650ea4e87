"""Conditions report why pods of workers and of HAProxy are missing."""

from typing import Any

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.kube.errors import ApiError
from tests.fake_cluster import FakeCluster
from tests.gateways import DEFAULTS
from tests.test_convergence import new_cluster, reconcile_once, settle
from tests.world import World

Manifest = dict[str, Any]
QUOTA = (
    'create Pod demo-worker-1 in StatefulSet demo-worker failed error: pods "demo-worker-1" is forbidden:'
    " exceeded quota: team, requested: limits.cpu=1, used: limits.cpu=4, limited: limits.cpu=4"
)


def refused(name: str, message: str, time: str, uid: str, **more: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "team"},
        "involvedObject": {"kind": "StatefulSet", "name": "demo-worker", "uid": uid},
        "reason": "FailedCreate",
        "message": message,
        "lastTimestamp": time,
        **more,
    }


def workers_available(cluster: FakeCluster) -> tuple[str, str]:
    conditions = cluster.find("GovernanceGateway", "demo")["status"]["conditions"]
    (told,) = [found for found in conditions if found["type"] == "WorkersAvailable"]
    return told["status"], told["message"]


def without_its_second_worker() -> tuple[FakeCluster, str]:
    cluster = new_cluster()
    settle(cluster)
    cluster.remove("Pod", "demo-worker-1")
    live = cluster.find("StatefulSet", "demo-worker")
    live["status"]["readyReplicas"] = 1
    return cluster, live["metadata"]["uid"]


def test_workers_that_cannot_be_created_are_told_with_the_newest_reason() -> None:
    cluster, uid = without_its_second_worker()
    cluster.put(refused("old", "violates PodSecurity", "2026-01-01T00:00:00Z", uid))
    cluster.put(refused("new", QUOTA, "2026-01-01T00:10:00Z", uid))
    cluster.put(refused("of-another", "of another set", "2026-01-01T00:20:00Z", "another"))
    cluster.put(refused("else", "deleted", "2026-01-01T00:20:00Z", uid, reason="SuccessfulDelete"))
    reconcile_once(cluster)
    assert workers_available(cluster) == ("False", f"1 of 2 workers ready: {QUOTA}")


def test_events_are_asked_for_only_while_pods_are_missing() -> None:
    cluster = new_cluster()
    settle(cluster)
    cluster.requests.clear()
    reconcile_once(cluster)
    assert "GET Event " not in cluster.requests
    cluster.remove("Pod", "demo-worker-1")
    reconcile_once(cluster)
    assert cluster.requests.count("GET Event ") == 1


def test_an_operator_that_may_not_read_events_does_without() -> None:
    cluster, _ = without_its_second_worker()
    answer = cluster.answer

    def forbidden(method: str, path: str, **parts: Any) -> Manifest:
        if method == "GET" and path.endswith("/events"):
            raise ApiError(403, "Forbidden", "events")
        return answer(method, path, **parts)

    cluster.answer = forbidden  # type: ignore[method-assign]
    reconcile_once(cluster)
    assert workers_available(cluster) == ("False", "1 of 2 workers ready")


def balancer_world(status: Manifest, *pods: Manifest) -> str:
    world = World().settle()
    world.child("Deployment", "demo-haproxy")["status"] = status
    world.balancers = list(pods)
    return world.condition(ConditionType.LOAD_BALANCER_AVAILABLE)[2]


def test_what_haproxys_pods_wait_for_is_told() -> None:
    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff"}}}
    pod = {"metadata": {"name": "demo-haproxy-x"}, "status": {"containerStatuses": [waiting]}}
    assert balancer_world({}, pod) == "0 of 2 HAProxy pods ready: demo-haproxy-x waits: ImagePullBackOff"


def test_haproxy_pods_that_cannot_be_created_are_told() -> None:
    condition = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: team"}
    told = balancer_world({"readyReplicas": 1, "conditions": [condition]})
    assert told == "1 of 2 HAProxy pods ready: exceeded quota: team"


def test_the_agent_beside_haproxy_is_of_the_operators_release_whatever_image_workers_have() -> None:
    world = World(worker={"image": "pinned:old"}).settle()
    containers = world.child("Deployment", "demo-haproxy")["spec"]["template"]["spec"]["containers"]
    images = {container["name"]: container["image"] for container in containers}
    assert images["haproxy-sidecar"] == DEFAULTS.worker_image
    workers = world.child("StatefulSet", "demo-worker")["spec"]["template"]["spec"]["containers"]
    assert workers[0]["image"] == "pinned:old"

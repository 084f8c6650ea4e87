"""Webhooks of other vendors that change what the operator writes, on a real API server."""

import itertools
import time
from typing import Any

import pytest

from tests.controlplane.namespaces import Namespace, gateway_manifest
from tests.controlplane.server import wait_for
from tests.controlplane.webhooks import mutating

pytestmark = pytest.mark.controlplane

Manifest = dict[str, Any]


def more_memory(workload: Manifest) -> None:
    """Change resources, as a policy engine with its own defaults does."""
    for container in workload["spec"]["template"]["spec"]["containers"]:
        container["resources"] = {name: {"cpu": "1", "memory": "600Mi"} for name in ("requests", "limits")}


def mesh(pod: Manifest) -> None:
    """Inject a proxy, as a service mesh does."""
    containers = pod["spec"]["containers"]
    if all(container["name"] != "mesh-proxy" for container in containers):
        restricted = {
            "allowPrivilegeEscalation": False,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        containers.append({"name": "mesh-proxy", "image": "mesh:test", "securityContext": restricted})


def test_a_webhook_that_rewrites_a_set_in_one_way_is_no_contest(namespace: Namespace) -> None:
    namespace.give_secrets()
    with mutating(namespace.plane, namespace.name, "apps", "statefulsets", more_memory) as written:
        namespace.start()
        namespace.apply(gateway_manifest())
        namespace.settle()
        namespace.rest()
        made = namespace.there("statefulset", "demo-worker")
        limits = made["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
        assert limits == {"cpu": "1", "memory": "600Mi"}
        before = len(written)
        namespace.rest()
        # The operator also sends no write that the API server would treat as no change.
        assert len(written) == before
        namespace.scale(3)
        wait_for(lambda: "pod/demo-worker-2" in namespace.objects(), "a third worker")


def test_a_webhook_that_never_agrees_costs_a_write_a_minute_is_named_and_stops_nothing_else(
    namespace: Namespace,
) -> None:
    kept = itertools.count(4)

    def another_each_time(workload: Manifest) -> None:
        workload["spec"]["revisionHistoryLimit"] = next(kept)

    namespace.give_secrets()
    with mutating(namespace.plane, namespace.name, "apps", "statefulsets", another_each_time) as written:
        namespace.start()
        namespace.apply(gateway_manifest())
        namespace.settle()
        # The StatefulSet controller's writes also pass the webhook, so they change the field too.
        namespace.annotate("statefulset", "demo-worker", touched="once")

        def contested() -> bool:
            namespace.make_ready()
            namespace.annotate("statefulset", "demo-worker", touched=str(next(kept)))
            return namespace.condition("Progressing")[1] == "Contested"

        wait_for(contested, "the status reports the conflict")
        message = namespace.condition("Progressing")[2]
        assert "StatefulSet demo-worker" in message and "revisionHistoryLimit" in message
        before, begun = len(written), time.monotonic()
        for _ in range(10):
            namespace.reconcile()
        minutes = (time.monotonic() - begun) / 60
        assert len(written) - before <= 1 + minutes
        namespace.scale(3)
        wait_for(lambda: "pod/demo-worker-2" in namespace.objects(), "a third worker")


def test_a_mesh_that_adds_a_sidecar_to_pods_costs_no_write(namespace: Namespace) -> None:
    namespace.give_secrets()
    with mutating(namespace.plane, namespace.name, "", "pods", mesh):
        namespace.start()
        namespace.apply(gateway_manifest())
        namespace.settle()
        namespace.rest()
        pod = namespace.there("pod", "demo-worker-0")
        assert [one["name"] for one in pod["spec"]["containers"]][-1] == "mesh-proxy"


def test_a_sidecar_whose_quantities_are_spelt_otherwise_is_no_drift(namespace: Namespace) -> None:
    namespace.give_secrets()
    limits = {"cpu": 1, "memory": "1024Mi", "hugepages-2Mi": "1024Mi", "ephemeral-storage": "1e9"}
    container: Manifest = {"name": "sidecar", "image": "sidecar:test", "resources": {"limits": limits}}
    container["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    operator = namespace.start()
    namespace.apply(gateway_manifest(worker={"podTemplate": {"sidecars": [container]}}))
    namespace.settle()
    # A new operator process has no memory of earlier writes and still finds nothing to write.
    operator.stop()
    operator = namespace.start()
    namespace.rest()
    assert operator.log.read_text().count("applied StatefulSet demo-worker") == 1

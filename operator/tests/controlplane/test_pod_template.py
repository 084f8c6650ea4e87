"""Additions to pods on a real API server: accepted ones, and the report of a refusal."""

from typing import Any

import pytest

from tests.controlplane.namespaces import Namespace, gateway_manifest

pytestmark = pytest.mark.controlplane

TEMPLATE: dict[str, Any] = {
    "labels": {"team": "ml"},
    "tolerations": [{"key": "llm", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "Exists"}]}]
            }
        }
    },
    "topologySpreadConstraints": [
        {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "imagePullSecrets": [{"name": "registry"}],
    "env": [{"name": "REGION", "valueFrom": {"configMapKeyRef": {"name": "region", "key": "name"}}}],
    "volumes": [{"name": "ca", "configMap": {"name": "corporate-ca", "optional": True}}],
    "volumeMounts": [{"name": "ca", "mountPath": "/etc/ca"}],
    "sidecars": [
        {
            "name": "shipper",
            "image": "shipper:1",
            "resources": {"limits": {"cpu": "100m", "memory": "32Mi"}},
            "volumeMounts": [{"name": "ca", "mountPath": "/etc/ca"}],
        }
    ],
}


def with_template(template: dict[str, Any]) -> dict[str, Any]:
    return gateway_manifest(worker={"podTemplate": template}, loadBalancer={"podTemplate": template})


def test_pods_have_what_was_added_and_are_still_let_into_a_restricted_namespace(namespace: Namespace) -> None:
    namespace.give_secrets()
    namespace.start()
    namespace.apply(with_template(TEMPLATE))
    namespace.settle()
    pod = namespace.there("pod", "demo-worker-0")
    assert pod["metadata"]["labels"]["team"] == "ml"
    assert [container["name"] for container in pod["spec"]["containers"]] == ["worker", "shipper"]
    assert pod["spec"]["affinity"] == TEMPLATE["affinity"]
    assert TEMPLATE["tolerations"][0] in pod["spec"]["tolerations"]
    # With a sidecar that has its own resources, the pod stays Guaranteed and the worker keeps its core.
    assert pod["status"]["qosClass"] == "Guaranteed"


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ({"volumeMounts": [{"name": "missing", "mountPath": "/missing"}]}, "missing"),
        # The API server answers with status 500, as for an internal error.
        (
            {"affinity": {"nodeAffinity": {"unknown": {}}}},
            "nodeAffinity.unknown: field not declared in schema",
        ),
    ],
)
def test_what_the_api_server_refuses_of_a_pod_is_told_in_its_words(
    namespace: Namespace, template: dict[str, Any], told: str
) -> None:
    namespace.give_secrets()
    namespace.start()
    namespace.apply(with_template(template))
    message = namespace.wait_condition("Progressing", "False", "ApplyFailed")
    assert "StatefulSet demo-worker" in message and told in message


def test_an_addition_without_a_name_never_reaches_the_operator(namespace: Namespace) -> None:
    refusal = namespace.plane.refusal(with_template({"sidecars": [{"image": "x"}]}), namespace.name)
    assert "spec.worker.podTemplate.sidecars[0].name" in refusal

"""A user's additions to pods are applied; the operator's settings stay; a condition reports conflicts."""

from typing import Any

import pytest

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.pod_template import PodTemplate
from proofgate_operator.build import haproxy, statefulset
from proofgate_operator.build.naming import Defaults, Manifest
from proofgate_operator.build.pod_overrides import override
from proofgate_operator.plan.pod_templates import balancer_template_problems, worker_template_problems
from tests.gateways import manifest

DEFAULTS = Defaults("worker:1", "haproxy:1")
SIZE = {"cpu": "100m", "memory": "64Mi"}
SIDECAR = {"name": "shipper", "image": "shipper:1", "resources": {"limits": SIZE}}
EVERYTHING: dict[str, Any] = {
    "labels": {"team": "ml"},
    "annotations": {"example.com/scrape": "no"},
    "nodeSelector": {"pool": "llm"},
    "tolerations": [{"key": "llm", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": {"anything": [1]}},
    "topologySpreadConstraints": [
        {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
    ],
    "priorityClassName": "serving",
    "imagePullSecrets": [{"name": "registry"}],
    "env": [{"name": "REGION", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['region']"}}}],
    "volumes": [{"name": "ca", "configMap": {"name": "corporate-ca"}}],
    "volumeMounts": [{"name": "ca", "mountPath": "/etc/ca", "readOnly": True}],
    "sidecars": [SIDECAR],
    "initContainers": [{**SIDECAR, "name": "wait"}],
}


def with_worker(template: dict[str, Any]) -> Gateway:
    return Gateway.from_manifest(manifest(worker={"podTemplate": template}))


def with_balancer(template: dict[str, Any]) -> Gateway:
    return Gateway.from_manifest(manifest(loadBalancer={"podTemplate": template}))


def worker_pod(gateway: Gateway) -> Manifest:
    template: Manifest = statefulset.statefulset(gateway, DEFAULTS, 2, "digest")["spec"]["template"]
    return template


def balancer_pod(gateway: Gateway) -> Manifest:
    template: Manifest = haproxy.deployment(gateway, DEFAULTS, "digest")["spec"]["template"]
    return template


def faults(gateway: Gateway) -> list[str]:
    return [
        problem.message
        for problems in (worker_template_problems, balancer_template_problems)
        for problem in problems(gateway, DEFAULTS)
    ]


@pytest.mark.parametrize(("make", "pod_of"), [(with_worker, worker_pod), (with_balancer, balancer_pod)])
def test_whatever_is_added_is_in_the_pod(make: Any, pod_of: Any) -> None:
    gateway = make(EVERYTHING)
    assert faults(gateway) == []
    template = pod_of(gateway)
    spec = template["spec"]
    assert template["metadata"]["labels"]["team"] == "ml"
    assert template["metadata"]["annotations"]["example.com/scrape"] == "no"
    assert spec["nodeSelector"] == {"pool": "llm"}
    assert spec["tolerations"] == EVERYTHING["tolerations"]
    assert spec["affinity"] == EVERYTHING["affinity"]
    assert spec["priorityClassName"] == "serving"
    assert spec["imagePullSecrets"] == EVERYTHING["imagePullSecrets"]
    assert EVERYTHING["env"][0] in spec["containers"][0]["env"]
    assert EVERYTHING["volumes"][0] in spec["volumes"]
    assert EVERYTHING["volumeMounts"][0] in spec["containers"][0]["volumeMounts"]
    assert spec["containers"][-1]["name"] == "shipper"
    assert [container["name"] for container in spec["initContainers"]][-1] == "wait"


@pytest.mark.parametrize(("make", "pod_of"), [(with_worker, worker_pod), (with_balancer, balancer_pod)])
def test_what_the_operator_sets_is_still_there(make: Any, pod_of: Any) -> None:
    bare, added = pod_of(Gateway.from_manifest(manifest())), pod_of(make(EVERYTHING))
    for field in ("labels", "annotations"):
        assert bare["metadata"][field].items() <= added["metadata"][field].items()
    assert {volume["name"] for volume in bare["spec"]["volumes"]} < {
        volume["name"] for volume in added["spec"]["volumes"]
    }
    for own, now in zip(bare["spec"]["containers"], added["spec"]["containers"], strict=False):
        assert own["name"] == now["name"] and own["resources"] == now["resources"]
        assert own["securityContext"] == now["securityContext"]
        for mount in own["volumeMounts"]:
            assert mount in now["volumeMounts"]


def test_a_gateway_without_additions_has_the_pods_of_one_with_an_empty_list() -> None:
    """An empty podTemplate must not cause a rollout."""
    assert worker_pod(with_worker({})) == worker_pod(Gateway.from_manifest(manifest()))
    assert balancer_pod(with_balancer({})) == balancer_pod(Gateway.from_manifest(manifest()))


def test_an_added_container_is_restricted_unless_it_says_otherwise() -> None:
    own = {"runAsNonRoot": True}
    pod = worker_pod(with_worker({"sidecars": [SIDECAR, {**SIDECAR, "name": "b", "securityContext": own}]}))
    first, second = pod["spec"]["containers"][-2:]
    assert first["securityContext"]["readOnlyRootFilesystem"]
    assert second["securityContext"] == own


def test_a_spread_without_a_selector_counts_the_pods_of_this_gateway() -> None:
    spread = worker_pod(with_worker(EVERYTHING))["spec"]["topologySpreadConstraints"]
    own = worker_pod(Gateway.from_manifest(manifest()))["spec"]["topologySpreadConstraints"]
    assert spread == [
        {**EVERYTHING["topologySpreadConstraints"][0], "labelSelector": own[0]["labelSelector"]}
    ]


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ({"labels": {"app.kubernetes.io/name": "mine"}}, "labels[app.kubernetes.io/name]"),
        ({"labels": {"proofgate.dev/anything": "x"}}, "labels[proofgate.dev/anything]"),
        ({"annotations": {"proofgate.dev/config-digest": "x"}}, "annotations[proofgate.dev/config-digest]"),
        ({"env": [{"name": "PROOFGATE_SHARD", "value": "7"}]}, "env[PROOFGATE_SHARD]"),
        ({"volumes": [{"name": "ledger", "emptyDir": {}}]}, "volumes[ledger]"),
        ({"volumeMounts": [{"name": "x", "mountPath": "/var/lib/proofgate"}]}, "/var/lib/proofgate"),
        ({"volumeMounts": [{"name": "x", "mountPath": "/etc/proofgate/ledger"}]}, "/etc/proofgate/ledger"),
        ({"sidecars": [{**SIDECAR, "name": "worker"}]}, "sidecars[worker]"),
        ({"sidecars": [SIDECAR], "initContainers": [SIDECAR]}, "initContainers[shipper]"),
    ],
)
def test_an_addition_that_would_replace_the_operators_own_is_a_problem_and_has_no_effect(
    template: dict[str, Any], told: str
) -> None:
    gateway = with_worker(template)
    (problem,) = worker_template_problems(gateway, DEFAULTS)
    assert problem.reason == "PodTemplateInvalid"
    assert problem.message.startswith("spec.worker.podTemplate.") and told in problem.message
    bare = worker_pod(Gateway.from_manifest(manifest()))
    kept = override(bare, PodTemplate.model_validate({**template, "volumeMounts": []}))
    assert kept["metadata"] == bare["metadata"]
    assert kept["spec"]["volumes"] == bare["spec"]["volumes"]
    assert kept["spec"]["containers"][0] == bare["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        ({}, ["limits.cpu", "limits.memory"]),
        ({"limits": {"cpu": "1"}}, ["limits.memory"]),
        ({"limits": SIZE, "requests": {"cpu": "50m"}}, ["requests.cpu"]),
        ({"limits": SIZE, "requests": SIZE}, []),
        ({"limits": SIZE}, []),
        ("nonsense", ["limits.cpu", "limits.memory"]),
    ],
)
def test_a_sidecar_that_would_cost_a_worker_its_core_is_a_problem(resources: Any, told: list[str]) -> None:
    for field in ("sidecars", "initContainers"):
        found = faults(with_worker({field: [{"name": "x", "image": "x", "resources": resources}]}))
        assert len(found) == len(told)
        for message, part in zip(found, told, strict=True):
            assert field in message and part in message


def test_a_sidecar_of_haproxy_may_have_any_size() -> None:
    assert faults(with_balancer({"sidecars": [{"name": "x", "image": "x"}]})) == []

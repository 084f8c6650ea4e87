"""Tenants as separate objects on a real API server: admission, printed columns and isolation."""

import base64
from typing import Any

import pytest

from tests.controlplane.api import secret
from tests.controlplane.namespaces import Namespace, gateway_manifest, role_binding
from tests.controlplane.server import ControlPlane, wait_for

pytestmark = pytest.mark.controlplane

KEY = {"name": "ci", "secretRef": {"name": "acme-keys", "key": "ci"}}
TEXT = "sk-test-attached-0123456789abcdef"
GOLD = {"name": "gold", "limits": {"requestsPerMinute": 600}, "models": ["gpt-4o-mini"]}


def tenant(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "proofgate.dev/v1alpha1",
        "kind": "GatewayTenant",
        "metadata": {"name": "acme"},
        "spec": {"gatewayRef": {"name": "demo"}, "plan": "gold", "apiKeys": [KEY], **spec},
    }


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"apiKeys": [{"name": "ci"}]}, "apiKeys: a key must have either secretRef or sha256"),
        ({"apiKeys": [{**KEY, "sha256": "a" * 64}]}, "apiKeys: a key must have either secretRef or sha256"),
        ({"apiKeys": [KEY, KEY]}, "spec.apiKeys[1]: Duplicate value"),
        ({"apiKeys": [{**KEY, "notAfter": "soon"}]}, "spec.apiKeys[0].notAfter"),
        (
            {"apiKeys": [{"name": f"k{n}", "sha256": f"a{n:063}"} for n in range(33)]},
            "spec.apiKeys: Too many",
        ),
        ({"gatewayRef": {"name": "No_Name"}}, "spec.gatewayRef.name"),
        ({"plan": ""}, "spec.plan"),
        ({"limits": {"requestsPerMinute": 1}}, 'unknown field "spec.limits"'),
        ({"placement": 1}, 'unknown field "spec.placement"'),
    ],
)
def test_a_tenant_that_is_refused_is_told_the_field(
    plane: ControlPlane, changes: dict[str, Any], sentence: str
) -> None:
    assert sentence in plane.refusal(tenant(**changes))


def test_a_tenant_is_named_so_that_records_can_name_it(plane: ControlPlane) -> None:
    manifest = tenant()
    manifest["metadata"]["name"] = "with.dots"
    assert "metadata.name must be at most 63 lower-case letters" in plane.refusal(manifest)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"tenants": []}, "spec.tenants: list a tenant, or let GatewayTenants attach"),
        (
            {"plans": [{**GOLD, "models": ["unknown"]}]},
            "spec.plans: every model of a plan must be in spec.models",
        ),
        ({"plans": [GOLD, GOLD]}, "spec.plans[1]: Duplicate value"),
        (
            {"plans": [{**GOLD, "allowedNamespaces": {}}]},
            "spec.plans: allowedNamespaces must have names, a selector, or both",
        ),
        ({"plans": [{**GOLD, "allowedNamespaces": {"names": []}}]}, "spec.plans[0].allowedNamespaces.names"),
        ({"plans": [{**GOLD, "perNamespace": {}}]}, "spec.plans: perNamespace must have tenants"),
        ({"plans": [{**GOLD, "perNamespace": {"limits": {}}}]}, "spec.plans: perNamespace must have tenants"),
        (
            {"plans": [{**GOLD, "perNamespace": {"tenants": 0}}]},
            "spec.plans[0].perNamespace.tenants",
        ),
        (
            {"tenants": [{"name": "acme", "plan": "gold", "apiKeys": [KEY]}]},
            "spec.tenants: every tenant's plan must be in spec.plans",
        ),
        (
            {
                "plans": [GOLD],
                "tenants": [{"name": "acme", "plan": "gold", "models": ["gpt-4o-mini"], "apiKeys": [KEY]}],
            },
            "spec.tenants: a tenant with a plan must not have models",
        ),
        (
            {"allowedTenants": {"namespaces": {"from": "Selector"}}},
            "spec.allowedTenants.namespaces: selector is required if from is Selector, and not allowed "
            "otherwise",
        ),
        (
            {"allowedTenants": {"namespaces": {"from": "Same", "selector": {"matchLabels": {"a": "b"}}}}},
            "spec.allowedTenants.namespaces: selector is required if from is Selector, and not allowed "
            "otherwise",
        ),
        ({"allowedTenants": {"namespaces": {"from": "Some"}}}, "spec.allowedTenants.namespaces.from"),
    ],
)
def test_a_gateway_whose_plans_cannot_be_is_refused(
    plane: ControlPlane, changes: dict[str, Any], sentence: str
) -> None:
    assert sentence in plane.refusal(gateway_manifest(**changes))


def test_allowed_tenants_alone_mean_the_gateways_own_namespace(namespace: Namespace) -> None:
    namespace.apply(gateway_manifest(plans=[GOLD], allowedTenants={}, tenants=[]))
    found = namespace.there("ggw", "demo")["spec"]
    assert found["allowedTenants"] == {"namespaces": {"from": "Same"}}


def condition(namespace: Namespace, kind: str) -> tuple[str, str]:
    found = namespace.get("gwt", "acme") or {}
    for one in found.get("status", {}).get("conditions", []):
        if one["type"] == kind:
            return one["status"], one["reason"]
    return "", ""


def shards(namespace: Namespace) -> str:
    """Return all key lines that workers and HAProxy read."""
    lines = ""
    for number in range(32):
        live = namespace.get("secret", f"demo-tenants-{number:02}")
        lines += base64.b64decode(((live or {}).get("data") or {}).get("keys", "")).decode()
    return lines


def test_a_tenant_attaches_is_told_and_is_shut_out_again(namespace: Namespace) -> None:
    namespace.give_secrets()
    namespace.start()
    namespace.apply(gateway_manifest(plans=[GOLD], allowedTenants={"namespaces": {"from": "Same"}}))
    namespace.apply(tenant())
    wait_for(
        lambda: condition(namespace, "KeysValid") == ("False", "SecretInvalid"),
        "KeysValid reports the missing Secret",
    )
    namespace.apply(secret("acme-keys-of-acme", ci=TEXT))
    namespace.apply(tenant(apiKeys=[{"name": "ci", "secretRef": {"name": "acme-keys-of-acme", "key": "ci"}}]))
    wait_for(lambda: condition(namespace, "KeysValid") == ("True", "Valid"), "the key is accepted")
    wait_for(lambda: condition(namespace, "Programmed") == ("True", "Programmed"), "the tenant is programmed")
    assert f" {namespace.name}/acme ci\n" in shards(namespace) and TEXT not in shards(namespace)
    heads, row = (line.split() for line in namespace.kubectl("get", "gwt").splitlines())
    assert heads == ["NAME", "GATEWAY", "PLAN", "ACCEPTED", "READY", "KEYS", "AGE"]
    assert row[:6] == ["acme", "demo", "gold", "True", "True", "1"]
    namespace.delete("secret", "acme-keys-of-acme")
    wait_for(lambda: shards(namespace) == "", "the key is gone")
    namespace.apply(tenant(plan="platinum"))
    wait_for(
        lambda: condition(namespace, "Accepted") == ("False", "PlanUnknown"),
        "Accepted reports the unknown plan",
    )


def test_what_the_operator_has_not_seen_is_of_no_generation(empty_namespace: Namespace) -> None:
    """Without -1, kstatus, and so Flux, would treat the object as settled before the operator has seen it."""
    empty_namespace.apply(gateway_manifest(plans=[GOLD], allowedTenants={}))
    empty_namespace.apply(tenant())
    for kind, name in (("ggw", "demo"), ("gwt", "acme")):
        assert empty_namespace.there(kind, name)["status"] == {"observedGeneration": -1}


def test_a_tenant_is_ready_for_the_generation_that_it_says(namespace: Namespace) -> None:
    namespace.give_secrets()
    namespace.start()
    namespace.apply(gateway_manifest(plans=[GOLD], allowedTenants={"namespaces": {"from": "Same"}}))
    namespace.apply(secret("own-keys", ci=TEXT))
    keys = [{"name": "ci", "secretRef": {"name": "own-keys", "key": "ci"}}]
    namespace.apply(tenant(apiKeys=keys))

    def is_told(status: str, reason: str) -> bool:
        live = namespace.there("gwt", "acme")
        seen = live.get("status", {}).get("observedGeneration") == live["metadata"]["generation"]
        return seen and condition(namespace, "Ready") == (status, reason)

    wait_for(lambda: is_told("True", "Ready"), "the tenant is ready")
    namespace.apply(tenant(apiKeys=keys, plan="platinum"))
    wait_for(lambda: is_told("False", "PlanUnknown"), "the tenant is not ready in the new generation")


def test_a_team_may_write_its_tenants_and_neither_run_pods_nor_see_other_keys(namespace: Namespace) -> None:
    namespace.apply(role_binding("team", "proofgate-gatewaytenants-edit", "team"))

    def may(verb: str, resource: str, where: str = namespace.name) -> bool:
        return namespace.plane.api.may("team", verb, resource, where)

    wait_for(lambda: may("create", "gatewaytenants.proofgate.dev"), "the grant is effective")
    for verb in ("create", "get", "update", "delete"):
        assert may(verb, "gatewaytenants.proofgate.dev")
        assert not may(verb, "gatewaytenants.proofgate.dev", "default"), "another team's namespace"
    for question in (
        ("patch", "gatewaytenants.proofgate.dev/status"),
        ("create", "governancegateways.proofgate.dev"),
        ("get", "governancegateways.proofgate.dev"),
        ("get", "secrets"),
        ("list", "secrets"),
        ("create", "pods"),
    ):
        assert not may(*question), question


def test_edit_in_a_namespace_gives_nothing_of_a_gateway_elsewhere(namespace: Namespace) -> None:
    """The test binds the chart's roles for `edit` directly: no controller aggregates roles here."""
    for kind in ("governancegateways", "gatewaytenants"):
        namespace.apply(role_binding(f"editors-of-{kind}", f"proofgate-{kind}-edit", "team"))

    def may(verb: str, resource: str, where: str = namespace.name) -> bool:
        return namespace.plane.api.may("team", verb, resource, where)

    wait_for(lambda: may("create", "gatewaytenants.proofgate.dev"), "the grant is effective")
    for kind in ("gatewaytenants", "governancegateways"):
        assert not may("patch", f"{kind}.proofgate.dev/status")
        for verb in ("get", "list", "create", "patch", "delete"):
            assert not may(verb, f"{kind}.proofgate.dev", "default")
    for question in (("get", "secrets"), ("create", "pods"), ("get", "configmaps"), ("patch", "services")):
        assert not may(*question, "default"), question

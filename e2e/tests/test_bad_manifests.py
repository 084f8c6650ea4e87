"""A manifest that cannot work is refused, or says what it lacks until it is there."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.api_server import ApiError
from e2e.kubernetes import PATIENCE, Namespace, Object, wait_until
from e2e.tests import fleet
from e2e.tests.traffic import ask


def changed(**spec: Any) -> Object:
    manifest = copy.deepcopy(fleet.gateway("refused", 1, tenants=("tenant-00",)))
    manifest["spec"].update(spec)
    return manifest


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"replicas": 0}, "spec.replicas"),
        ({"worker": {"cpu": "1.5"}}, "spec.worker"),
        ({"models": [{"name": "m", "provider": "nobody"}]}, "provider"),
        ({"providers": [{"name": "p", "type": "OpenAI", "baseURL": "ftp://x"}]}, "baseURL"),
        ({"providers": [{"name": "p", "type": "OpenAI", "baseURL": "http://x:70000"}]}, "baseURL"),
        ({"tenants": []}, "spec.tenants"),
        ({"tenants": [{"name": "keyless"}]}, "apiKeys"),
        ({"policy": {"packs": ["everything"]}}, "spec.policy.packs"),
        ({"cors": {"allowedOrigins": ["https://app.example.com/"]}}, "spec.cors.allowedOrigins"),
        ({"ledger": {"durability": "maybe"}}, "spec.ledger.durability"),
        ({"surprise": True}, "surprise"),
    ],
)
def test_a_manifest_that_the_schema_refuses_is_refused_with_the_fields_name(
    namespace: Namespace, spec: dict[str, Any], named: str
) -> None:
    with pytest.raises(ApiError) as refusal:
        namespace.apply(changed(**spec))
    assert named in str(refusal.value)
    assert namespace.get("ggw", "refused") is None


def test_a_policy_that_workers_would_refuse_is_a_condition_and_they_keep_the_one_they_have(
    namespace: Namespace, two_workers: str
) -> None:
    policy = {"rules": [{"id": "endless", "reason": "Never.", "regex": "a+"}]}
    namespace.apply(fleet.gateway(two_workers, 2, policy=policy))
    wait_until(
        lambda: namespace.condition(two_workers, "ConfigValid").get("reason") == "PolicyInvalid",
        PATIENCE,
        "ConfigValid is False",
    )
    assert "spec.policy.rules[endless].regex" in namespace.condition(two_workers, "ConfigValid")["message"]
    assert ask(namespace, two_workers, fleet.key_of(fleet.TENANTS[0])) == 200


@pytest.fixture
def incomplete(namespace: Namespace) -> Iterator[str]:
    """A gateway whose tenant's Secret is not there."""
    volume = {"storageClassName": "lab-shared", "size": "1Gi", "retainPolicy": "Delete"}
    spec = {"ledger": {"volume": volume}, "loadBalancer": fleet.ONE_BALANCER}
    namespace.delete("secret", "latecomer-keys")
    namespace.apply(fleet.gateway("incomplete", 1, tenants=("latecomer",), **spec))
    yield "incomplete"
    namespace.delete("ggw", "incomplete", wait=False)


def test_a_missing_secret_costs_its_owner_alone_and_heals_when_it_appears(
    namespace: Namespace, incomplete: str
) -> None:
    def resolved() -> str:
        status: str = namespace.condition(incomplete, "ResolvedRefs").get("status", "")
        return status

    wait_until(lambda: resolved() == "False", PATIENCE, "ResolvedRefs is False")
    assert "latecomer-keys" in namespace.condition(incomplete, "ResolvedRefs")["message"]
    (fault,) = (namespace.get("ggw", incomplete) or {})["status"]["faults"]
    assert (fault["field"], fault["reason"]) == ("spec.tenants[latecomer]", "SecretMissing")
    wait_until(
        lambda: namespace.condition(incomplete, "Ready").get("message", "").startswith("no tenant has a key"),
        PATIENCE,
        "all is there but for keys",
    )
    namespace.apply(fleet.secret("latecomer"))
    wait_until(lambda: resolved() == "True", PATIENCE, "ResolvedRefs heals")
    wait_until(lambda: namespace.is_ready(incomplete, 1), PATIENCE, "the gateway is Ready")

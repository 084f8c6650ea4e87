"""Configuration changes that running workers load, and changes that replace workers."""

import base64
import copy
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.plan.decide import ReconcilePlan
from tests.certificates import write_certificate
from tests.gateways import SPEC, api_keys, secret
from tests.world import PROVIDER, World, kinds, pod


def running() -> World:
    """Return a settled gateway with two pods that run its configuration."""
    world = World().settle()
    world.pods = [pod(0), pod(1)]
    return world.settle()


def renewed(plan: ReconcilePlan) -> tuple[str, ...]:
    return tuple(plan.pod_annotations)


def pod_of_haproxy() -> dict[str, Any]:
    return {"metadata": {"name": "demo-haproxy-0"}}


def tls_secret(chain: str) -> dict[str, Any]:
    made = secret("demo-tls")
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in (("tls.crt", chain),)}
    return {**made, "data": {**encoded, "tls.key": base64.b64encode(b"key").decode()}}


def ready(ordinal: int, status: str = "True") -> dict[str, Any]:
    return {**pod(ordinal), "status": {"conditions": [{"type": "Ready", "status": status}]}}


def test_a_new_pod_is_marked_with_the_configuration_once() -> None:
    world = World().settle()
    world.pods = [pod(0), pod(1)]
    plan = world.plan()
    assert (plan.manifests_to_apply, renewed(plan)) == ((), ("demo-worker-0", "demo-worker-1"))
    world.carry_out(plan)
    assert not world.plan().has_writes


LIVE: list[tuple[dict[str, Any], set[str]]] = [
    ({"providers": [{**PROVIDER, "baseURL": "https://other.example.com"}]}, {"ConfigMap"}),
    ({"models": [{"name": "gpt-4o-mini", "provider": "openai", "maxOutputTokens": 9}]}, {"ConfigMap"}),
    ({"policy": {"packs": ["pii"], "mode": "DryRun"}}, {"ConfigMap"}),
    ({"cors": {"allowedOrigins": ["https://app.example.com"]}}, {"ConfigMap"}),
    ({"timeouts": {"drainSeconds": 40}}, {"ConfigMap"}),
    ({"tenants": [{**SPEC["tenants"][0], "limits": {"requestsPerMinute": 5}}]}, set()),
    ({"tenants": [*SPEC["tenants"], {"name": "third", "apiKeys": api_keys("third", "only")}]}, set()),
]


@pytest.mark.parametrize(("changes", "written"), LIVE, ids=lambda value: next(iter(value), ""))
def test_what_workers_take_on_while_they_run_rolls_none_of_them(
    changes: dict[str, Any], written: set[str]
) -> None:
    world = running()
    world.secrets["third"] = secret("third", only="sk-test-third-0123456789")
    template = copy.deepcopy(world.child("StatefulSet", "demo-worker"))
    world.manifest["spec"].update(changes)
    plan = world.plan()
    assert "StatefulSet" not in kinds(plan.manifests_to_apply)
    assert not written or kinds(plan.manifests_to_apply) == written
    assert plan.pod_annotations == {}, "the kubelet is notified only of new content"
    world.carry_out(plan)
    assert renewed(world.plan()) == ("demo-worker-0", "demo-worker-1")
    world.settle()
    assert world.child("StatefulSet", "demo-worker") == template


@pytest.mark.parametrize(
    "changes",
    [
        {"ledger": {**SPEC["ledger"], "durability": "Synced"}},
        {"ledger": {**SPEC["ledger"], "checkpointIntervalSeconds": 2}},
        {"providers": [{"name": "openai", "type": "OpenAI", "baseURL": "https://api.example.com/v1"}]},
        {"worker": {"memory": "1Gi"}},
        {"analysis": {}},
    ],
    ids=lambda value: next(iter(value)),
)
def test_what_workers_read_only_at_their_start_rolls_them(changes: dict[str, Any]) -> None:
    world = running()
    world.manifest["spec"].update(changes)
    assert "StatefulSet" in kinds(world.plan().manifests_to_apply)


def test_a_rotated_tenant_key_replaces_nobody_and_is_fetched_by_workers_and_haproxy() -> None:
    world = running()
    world.balancers = [pod_of_haproxy()]
    world.settle()
    world.secrets["acme-keys"] = secret("acme-keys", first="sk-test-acme-new-key-0123456789")
    plan = world.plan()
    assert kinds(plan.manifests_to_apply) == {"Secret"}
    assert plan.pod_annotations == {}, "the kubelet is notified only of new content"
    world.carry_out(plan)
    assert renewed(world.plan()) == ("demo-worker-0", "demo-worker-1", "demo-haproxy-0")
    world.settle()


def test_a_placement_replaces_nobody_and_is_fetched_by_haproxy_alone() -> None:
    world = running()
    world.balancers = [pod_of_haproxy()]
    world.settle()
    world.manifest["spec"]["tenants"][0]["placement"] = 1
    plan = world.plan()
    assert kinds(plan.manifests_to_apply) == {"Secret"}
    world.carry_out(plan)
    assert renewed(world.plan()) == ("demo-haproxy-0",)


def test_a_renewed_certificate_replaces_nobody_and_is_fetched_by_haproxy_alone() -> None:
    world = running()
    world.balancers = [pod_of_haproxy()]
    world.manifest["spec"]["loadBalancer"] = {"tls": {"certificateSecretRef": {"name": "demo-tls"}}}
    world.secrets["demo-tls"] = tls_secret("first")
    world.settle()
    world.secrets["demo-tls"] = tls_secret("second")
    plan = world.plan()
    assert (plan.manifests_to_apply, renewed(plan)) == ((), ("demo-haproxy-0",))


@pytest.mark.parametrize(
    ("found", "reason"), [(None, "SecretMissing"), (secret("demo-tls", other="x"), "SecretInvalid")]
)
def test_a_certificate_that_is_missing_is_a_condition_and_changes_nothing(
    found: dict[str, Any] | None, reason: str
) -> None:
    world = running()
    world.manifest["spec"]["loadBalancer"] = {"tls": {"certificateSecretRef": {"name": "demo-tls"}}}
    world.secrets["demo-tls"] = found
    plan = world.plan()
    assert not kinds(plan.manifests_to_apply) & {"Secret", "StatefulSet"}
    status, said, message = world.condition(ConditionType.RESOLVED_REFS)
    assert (status, said) == ("False", reason)
    assert "demo-tls" in message


@pytest.mark.parametrize(
    ("chain", "key", "complaint"),
    [
        ("own", "own", None),
        ("own", "other", "has a key under tls.key that does not match the first certificate in tls.crt"),
        ("nonsense", "own", "has no readable certificate under tls.crt"),
        ("own", "nonsense", "has no readable private key without a passphrase under tls.key"),
        ("own", "locked", "has no readable private key without a passphrase under tls.key"),
        ("long", "own", "has more than 30000 characters under tls.crt and tls.key together"),
    ],
)
def test_a_certificate_that_cannot_be_shown_is_told_with_what_is_wrong(
    tmp_path: Path, chain: str, key: str, complaint: str | None
) -> None:
    texts = {"nonsense": "no PEM at all"}
    for name in ("own", "other"):
        write_certificate(tmp_path / name, name=name)
    private = load_pem_private_key((tmp_path / "own.key").read_bytes(), None)
    locked = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    texts |= {"locked": locked.decode(), "long": (tmp_path / "own").read_text() * 100}
    found = secret("demo-tls")
    found["data"] = {
        "tls.crt": base64.b64encode((texts.get(chain) or (tmp_path / chain).read_text()).encode()).decode(),
        "tls.key": base64.b64encode(
            (texts.get(key) or (tmp_path / f"{key}.key").read_text()).encode()
        ).decode(),
    }
    world = running()
    world.manifest["spec"]["loadBalancer"] = {"tls": {"certificateSecretRef": {"name": "demo-tls"}}}
    world.secrets["demo-tls"] = found
    status, reason, message = world.condition(ConditionType.RESOLVED_REFS)
    if complaint is None:
        assert status == "True"
    else:
        assert (status, reason) == ("False", "CertificateInvalid")
        assert message == f"Secret demo-tls, named by spec.loadBalancer.tls.certificateSecretRef, {complaint}"


def test_a_key_that_will_expire_replaces_nobody() -> None:
    """HAProxy routes an expired key like any other; its worker refuses it."""
    world = running()
    world.manifest["spec"]["tenants"][0]["apiKeys"][0]["notAfter"] = "2030-01-01T00:00:00Z"
    plan = world.plan()
    assert kinds(plan.manifests_to_apply) == {"Secret"}
    world.carry_out(plan)
    assert renewed(world.plan()) == ("demo-worker-0", "demo-worker-1")


def test_a_rotated_provider_key_is_only_fetched() -> None:
    world = running()
    world.secrets["openai"] = secret("openai", api_key="sk-upstream-rotated-0123")
    plan = world.plan()
    assert (plan.manifests_to_apply, renewed(plan)) == ((), ("demo-worker-0", "demo-worker-1"))


def test_a_pod_that_leaves_and_a_bad_configuration_are_not_marked() -> None:
    world = running()
    world.pods[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.secrets["openai"] = secret("openai", api_key="sk-upstream-rotated-0123")
    assert renewed(world.plan()) == ("demo-worker-1",)
    world.secrets["acme-keys"] = None
    assert world.plan().pod_annotations == {}

"""Conclusions from a status: whether requests are served, and whether work continues or has stopped."""

import asyncio
from typing import Any

import pytest

from proofgate_operator import metrics
from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType
from proofgate_operator.handlers.apply_history import ApplyHistory
from proofgate_operator.handlers.reconcile import reconcile
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.plan.attachment import TenantConditionType
from proofgate_operator.plan.kstatus import kstatus_condition, tenant_kstatus_condition
from tests.auditing import AUDITOR, LOG, ROLLBACK, Asked, key_secret, reconcile_with, report
from tests.fake_cluster import FakeCluster
from tests.gateways import DEFAULTS, NAMESPACE, SPEC, UID
from tests.moving_world import MovingWorld
from tests.test_attached_tenants import World as Attached
from tests.test_convergence import new_cluster, reconcile_once, settle, status
from tests.world import World

Manifest = dict[str, Any]
LIMITED = [{**SPEC["tenants"][0], "limits": {"requestsPerMinute": 60}}]


def condition(kind: ConditionType, holds: bool, reason: str) -> Condition:
    return Condition(
        kind, ConditionStatus.TRUE if holds else ConditionStatus.FALSE, reason, f"because {reason}"
    )


@pytest.mark.parametrize(
    ("valid", "progressing", "told"),
    [
        ((True, "Valid"), (False, "Settled"), None),
        ((True, "Valid"), (False, "Paused"), None),
        ((True, "Valid"), (False, "Contested"), None),
        ((True, "Valid"), (True, "Rolling"), ("Reconciling", "Rolling")),
        ((True, "Valid"), (False, "RolloutStalled"), ("Stalled", "RolloutStalled")),
        ((True, "Valid"), (False, "ApplyFailed"), ("Stalled", "ApplyFailed")),
        ((False, "PolicyInvalid"), (True, "ScalingUp"), ("Stalled", "PolicyInvalid")),
        ((False, "SigningKeyLost"), (False, "ConfigInvalid"), ("Stalled", "SigningKeyLost")),
    ],
)
def test_reconciling_and_stalled_are_there_only_while_they_hold_and_never_both(
    valid: tuple[bool, str], progressing: tuple[bool, str], told: tuple[str, str] | None
) -> None:
    found = kstatus_condition(
        [condition(ConditionType.CONFIG_VALID, *valid), condition(ConditionType.PROGRESSING, *progressing)]
    )
    assert [(one.type.value, one.reason) for one in found] == ([told] if told else [])
    assert all(one.is_true for one in found)


def test_a_gateway_that_comes_reconciles_and_one_that_is_refused_is_stalled() -> None:
    cluster = new_cluster()
    reconcile_once(cluster)
    assert status(cluster)["Reconciling"][0] == "True"
    settle(cluster)
    assert not {"Reconciling", "Stalled"} & status(cluster).keys()
    cluster.refuse["Service"] = ApiError(403, "Forbidden", "exceeded quota")
    cluster.remove("Service", "demo")
    reconcile_once(cluster)
    assert status(cluster)["Stalled"] == ("True", "ApplyFailed")
    del cluster.refuse["Service"]
    settle(cluster)
    assert not {"Reconciling", "Stalled"} & status(cluster).keys()


def audited_cluster() -> FakeCluster:
    """Return a settled gateway whose auditor has found nothing."""
    cluster = new_cluster(auditor=AUDITOR)
    cluster.put(key_secret())
    for _ in range(6):
        reconcile_with(cluster, Asked(report(1)))
        cluster.run_controllers()
    assert status(cluster)["Audited"][0] == "True"
    return cluster


def told(cluster: FakeCluster) -> list[str]:
    return sorted(live["reason"] for key, live in cluster.objects.items() if key[0] == "Event")


def test_while_the_status_is_refused_findings_events_and_metrics_go_on_and_each_is_told_once() -> None:
    cluster = audited_cluster()
    before = told(cluster)
    cluster.refuse["GovernanceGateway"] = ApiError(
        422, "Invalid", "status.keeping.retentionKeyName: Too long"
    )
    for _ in range(3):
        outcome = reconcile_with(cluster, Asked(report(1, ROLLBACK)))
        assert (outcome.failed, outcome.settled) == (True, False)
    assert told(cluster) == sorted([*before, "AuditFinding", "LedgerDiverged"])
    labels = {"namespace": NAMESPACE, "gateway": "demo"}
    assert metrics.REGISTRY.get_sample_value("proofgate_operator_gateway_audited", labels) == 0
    assert status(cluster)["Audited"][0] == "True", "as it was"


def test_a_status_that_the_api_server_fails_on_again_and_again_silences_nothing_either() -> None:
    cluster = audited_cluster()
    cluster.refuse["GovernanceGateway"] = ApiError(500, "InternalError", "a webhook failed")
    with pytest.raises(ApiError):
        reconcile_with(cluster, Asked(report(1, ROLLBACK)))
    asked = Asked(report(1, ROLLBACK))
    asyncio.run(reconcile(cluster, NAMESPACE, "demo", UID, DEFAULTS, LOG, asked, ApplyHistory(), failures=3))
    assert "AuditFinding" in told(cluster)


def test_tenants_of_a_gateway_whose_status_is_refused_are_told_all_the_same() -> None:
    world = Attached()
    world.settle()
    world.cluster.find("GovernanceGateway", "demo")["metadata"]["generation"] += 1
    world.cluster.refuse["GovernanceGateway"] = ApiError(422, "Invalid", "too long")
    world.add("late")
    for _ in range(3):
        asyncio.run(world.loop.reconcile())
        world.cluster.run_controllers()
    assert world.condition("late", "Programmed")[0] == "True"


def test_a_spec_that_cannot_be_read_is_stalled() -> None:
    cluster = new_cluster()
    reconcile_once(cluster)
    cluster.find("GovernanceGateway", "demo")["spec"]["replicas"] = "many"
    reconcile_once(cluster)
    assert status(cluster)["Stalled"] == ("True", "SpecInvalid")
    assert "Reconciling" not in status(cluster)


def test_a_gateway_stays_available_while_workers_come() -> None:
    world = MovingWorld(2)
    balancer = world.world.child("Deployment", "demo-haproxy")
    balancer["status"] = {"readyReplicas": 2}
    world.scale(5)
    seen = set()
    for _ in range(30):
        found = world.reconcile().status
        assert found.condition(ConditionType.AVAILABLE).is_true
        seen.add(found.condition(ConditionType.READY).status)
        world.tick()
    assert seen == {ConditionStatus.TRUE, ConditionStatus.FALSE}


def test_one_tenants_bad_secret_leaves_the_gateway_available_and_ready() -> None:
    cluster = new_cluster()
    settle(cluster)
    cluster.remove("Secret", "globex-keys")
    settle(cluster)
    found = status(cluster)
    assert found["ResolvedRefs"] == ("False", "SecretMissing")
    assert found["Available"] == ("True", "Serving") and found["Ready"][0] == "True"
    assert "Stalled" not in found


@pytest.mark.parametrize(
    ("volumes", "replicas", "said"),
    [
        ("Shared", 2, "counts with a delay of about two seconds"),
        ("PerWorker", 2, "each worker grants every limit in full"),
        ("Shared", 1, None),
    ],
)
def test_what_limits_mean_without_affinity_is_said(volumes: str, replicas: int, said: str | None) -> None:
    volume = {**SPEC["ledger"]["volume"], "mode": volumes}
    world = World(
        replicas=replicas,
        tenants=LIMITED,
        ledger={"volume": volume},
        loadBalancer={"affinity": "None"},
    ).settle()
    message = world.condition(ConditionType.CONFIG_VALID)[2]
    assert ("affinity None" in message) is (said is not None)
    assert (said or "the spec is valid") in message


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, True),
        ({"prices": [{"model": "*", "effectiveFrom": "2026-01-01", "input": "1", "output": "1"}]}, False),
        ({"defaultPrices": True}, False),
    ],
)
def test_a_budget_in_money_whose_models_have_no_price_is_said(more: dict[str, Any], said: bool) -> None:
    tenants = [{**SPEC["tenants"][0], "limits": {"dollarsPerDay": "5"}}]
    world = World(tenants=tenants, **more).settle()
    status, reason, message = world.condition(ConditionType.CONFIG_VALID)
    assert (status, reason) == ("True", "Valid")
    name = SPEC["tenants"][0]["name"]
    assert (f"spec.tenants[{name}] has a budget in money, and " in message) is said
    assert ("price_unknown" in message) is said


@pytest.mark.parametrize(
    ("accepted", "keys", "programmed", "expected"),
    [
        ("True", "True", "True", None),
        ("True", "True", "False/Pending", "Reconciling/Pending"),
        ("True", "True", "False/Paused", None),
        ("True", "True", "False/NameTaken", "Stalled/NameTaken"),
        ("True", "False/SecretMissing", "False/Pending", "Stalled/SecretMissing"),
        ("True", "Unknown/MayNotLook", "True", "Reconciling/MayNotLook"),
        ("True", "True", "False/HoldEnded", "Stalled/HoldEnded"),
        ("False/PlanUnknown", "Unknown/NotAccepted", "False/NotAccepted", "Stalled/PlanUnknown"),
    ],
)
def test_kstatus_of_a_tenant_says_whether_waiting_helps(
    accepted: str, keys: str, programmed: str, expected: str | None
) -> None:
    kinds = (TenantConditionType.ACCEPTED, TenantConditionType.KEYS_VALID, TenantConditionType.PROGRAMMED)
    needs = [
        Condition(kind, ConditionStatus(said.partition("/")[0]), said.partition("/")[2], "")
        for kind, said in zip(kinds, (accepted, keys, programmed), strict=True)
    ]
    found = [f"{condition.type}/{condition.reason}" for condition in tenant_kstatus_condition(needs)]
    assert found == ([expected] if expected else [])

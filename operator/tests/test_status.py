"""What others conclude from a status: whether anybody is served, and whether work goes on or has stopped."""

from typing import Any

import pytest

from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType
from proofgate_operator.kube.errors import ApiError
from proofgate_operator.plan.kstatus import kstatus
from tests.gateways import SPEC
from tests.moving_world import MovingWorld
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
    found = kstatus(
        [condition(ConditionType.CONFIG_VALID, *valid), condition(ConditionType.PROGRESSING, *progressing)]
    )
    assert [(one.type.value, one.reason) for one in found] == ([told] if told else [])
    assert all(one.holds for one in found)


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
        assert found.condition(ConditionType.AVAILABLE).holds
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
        ("Shared", 2, "counts about two seconds late"),
        ("PerWorker", 2, "each grants the whole of every limit"),
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

"""Operator and gateway in one namespace, as README.md installs them, when the gateway or the namespace is deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from e2e import evidence
from e2e.commands import proofgate
from e2e.kubernetes import (
    MADE_BY_TESTS,
    PATIENCE,
    REPOSITORY,
    Namespace,
    install_operator,
    ledger_directory,
    wait_until,
)
from e2e.operations import Gateway
from e2e.tests import fleet
from e2e.tests.traffic import ask, wait_reachable

LLM = Namespace("proofgate-llm")
DEMO = REPOSITORY / "examples" / "demo"
#: A tenant's key, from 10-tenant-keys.yaml.
KEY = "sk-demo-acme-0123456789abcdef"
#: Less than half of the default grace period of HAProxy's pods.
GONE_SECONDS = 180


@pytest.fixture(scope="module")
def demo(operator: Namespace) -> Iterator[Gateway]:
    """The demo's gateway with small workers, in a namespace with an operator that serves only this namespace."""
    if LLM.exists():
        LLM.delete_gateways()
        LLM.remove()
    LLM.create(**MADE_BY_TESTS)
    try:
        # The CRD belongs to the other release.
        install_operator([], {"crds.enabled": False}, LLM)
        found = Gateway(LLM, "demo")
        apply(found)
        yield found
    finally:
        LLM.remove(wait=False)


def apply(demo: Gateway) -> None:
    """Applies the demo's manifests and waits until it serves."""
    manifests = [manifest for path in sorted(DEMO.glob("*.yaml")) for manifest in yaml.safe_load_all(path.read_text())]
    [gateway] = [manifest for manifest in manifests if manifest["kind"] == "GovernanceGateway"]
    gateway["spec"]["worker"] = fleet.WORKER
    LLM.kubectl("apply", "-f", "-", stdin="\n---\n".join(json.dumps(manifest) for manifest in manifests))
    demo.wait_settled(2)
    LLM.wait_ready("deployment", "mock-upstream")
    wait_reachable(LLM, demo.name)


def verifying_key() -> str:
    """The verifying key in the gateway's status."""
    found = LLM.get("ggw", "demo")
    assert found is not None
    key: str = found["status"]["ledger"]["verifyingKey"]
    return key


def newest() -> dict[str, dict[str, object]]:
    """The first record of each shard's newest log, by shard."""
    ledger = ledger_directory(LLM, "demo")
    found = {}
    for shard in sorted(path.name for path in ledger.iterdir() if path.name.isdigit()):
        records = evidence.records(ledger, shards=shard)
        last = max(record["log"] for record in records)
        found[shard] = next(record for record in records if record["log"] == last)
    return found


def test_a_gateway_deleted_and_applied_again_has_the_same_key_and_continues_its_chain(demo: Gateway) -> None:
    assert ask(LLM, demo.name, KEY) == 200
    key, before = verifying_key(), newest()
    LLM.kubectl("delete", "-f", str(DEMO))
    apply(demo)
    assert ask(LLM, demo.name, KEY) == 200
    assert verifying_key() == key
    after = newest()
    assert before.keys() == after.keys() == {"0", "1"}
    for shard, opened in after.items():
        predecessor = opened["predecessor"]
        assert isinstance(predecessor, dict)
        assert predecessor["incarnation"] == before[shard]["log"] != opened["log"]
        assert predecessor["sealed"] is True

    def verified() -> bool:
        # The check fails until a checkpoint covers the newest records.
        return proofgate("ledger", "fsck", str(ledger_directory(LLM, "demo")), "--key", key).returncode == 0

    wait_until(verified, PATIENCE, "the whole volume is verified", every=1)


def test_the_namespace_of_operator_and_gateway_waits_for_nothing_but_its_pods_when_it_is_deleted(demo: Gateway) -> None:
    """HAProxy's grace is short: Kubernetes checks a namespace again after half of its pods' longest grace period."""
    grace = {"loadBalancer": {"terminationGracePeriodSeconds": 60}, "timeouts": {"connectionAgeSeconds": 20}}
    demo.roll("load-balancer", lambda: demo.patch(grace))
    LLM.remove(wait=False)
    wait_until(lambda: not LLM.exists(), GONE_SECONDS, "the namespace is gone")

"""What workers take on while they run: no pod is replaced, and no request fails."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.kubernetes import Namespace, wait_until
from e2e.load import steady_load
from e2e.operations import Gateway
from e2e.revocation import seconds_to_the_last_accepted_request
from e2e.tests import fleet
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.traffic import ask, records

#: The operator has the kubelet renew a pod's files at once. Should that pass unheard, the kubelet renews them about
#: once a minute, and what is waited for comes all the same: `make bench-operator` times it.
SECONDS = 90
#: From the write that takes a key away to the last request that it was accepted for, at most, on a busy machine: less
#: than the kubelet alone would take. `make bench-operator` times it.
REVOKED_SECONDS = 30
RULE = {"id": "codename", "reason": "It names a project.", "literals": ["bluebird"], "action": "Block"}
#: A tenant that the load does not use.
SUBJECT = TENANTS[20]
KEYS = [key_of(tenant) for tenant in TENANTS[:12]]


def lives(namespace: Namespace, gateway: str) -> dict[str, Any]:
    """Every worker's pod and how often its process was started."""
    pods = namespace.list("pods", f"app.kubernetes.io/component=worker,proofgate.dev/gateway={gateway}")
    return {
        pod["metadata"]["uid"]: [status["restartCount"] for status in pod["status"].get("containerStatuses", [])]
        for pod in pods
    }


@pytest.fixture
def untouched(namespace: Namespace, two_workers: str) -> Iterator[str]:
    """The gateway, whose manifest is put back afterwards, and whose workers have to be the same throughout."""
    before = lives(namespace, two_workers)
    try:
        yield two_workers
        assert lives(namespace, two_workers) == before
    finally:
        namespace.apply(fleet.gateway(two_workers, replicas=2))
        wait_until(lambda: Gateway(namespace, two_workers).settled(2), 180, "the gateway is as before")


def patch_secret(namespace: Namespace, tenant: str, **entries: str) -> None:
    """Sets entries of a tenant's Secret."""
    data = {name: base64.b64encode(text.encode()).decode() for name, text in entries.items()}
    patch = json.dumps({"data": data})
    namespace.kubectl("patch", "secret", f"{tenant}-keys", "--type=merge", "--patch", patch)


def test_a_policy_is_taken_on_under_load_without_a_failed_request(
    namespace: Namespace, untouched: str, tmp_path: Path
) -> None:
    assert ask(namespace, untouched, key_of(SUBJECT), "tell me of bluebird") == 200
    with steady_load(namespace, untouched, tmp_path, KEYS) as load:
        namespace.apply(fleet.gateway(untouched, replicas=2, policy={"rules": [RULE]}))
        wait_until(
            lambda: ask(namespace, untouched, key_of(SUBJECT), "tell me of bluebird") == 403,
            SECONDS,
            "the rule holds",
        )
    assert not load.report.failed and not load.report.broken, (load.report.failed + load.report.broken)[:3]
    changed = [record for record in records(namespace, untouched) if record["kind"] == "config"]
    assert changed, "the ledger tells that the configuration changed"


def test_a_tenants_limit_holds_without_a_restart(namespace: Namespace, untouched: str) -> None:
    manifest = fleet.gateway(untouched, replicas=2)
    tenant = next(tenant for tenant in manifest["spec"]["tenants"] if tenant["name"] == SUBJECT)
    tenant["limits"] = {"requestsPerMinute": 1}
    namespace.apply(manifest)
    wait_until(lambda: ask(namespace, untouched, key_of(SUBJECT)) == 429, SECONDS, "the limit holds")
    assert ask(namespace, untouched, key_of(TENANTS[21])) == 200


def test_a_tenant_is_added_without_a_restart(namespace: Namespace, untouched: str) -> None:
    namespace.apply(fleet.secret("newcomer"))
    namespace.apply(fleet.gateway(untouched, replicas=2, tenants=(*TENANTS, "newcomer")))
    wait_until(
        lambda: Gateway(namespace, untouched).settled(2) and ask(namespace, untouched, key_of("newcomer")) == 200,
        120,
        "the new tenant is served",
    )


def test_a_tenants_key_is_rotated_under_load_without_a_failed_request(
    namespace: Namespace, untouched: str, tmp_path: Path
) -> None:
    new = "sk-e2e-rotated-0123456789abcdef"
    with steady_load(namespace, untouched, tmp_path, KEYS) as load:
        patch_secret(namespace, SUBJECT, second=new)
        wait_until(
            lambda: Gateway(namespace, untouched).settled(2) and ask(namespace, untouched, new) == 200,
            120,
            "it is let in",
        )
        assert ask(namespace, untouched, key_of(SUBJECT)) == 200
        patch_secret(namespace, SUBJECT, second=key_of(SUBJECT, 1))
        wait_until(lambda: ask(namespace, untouched, new) == 401, SECONDS, "the key is refused")
    assert not load.report.failed and not load.report.broken, (load.report.failed + load.report.broken)[:3]


def test_a_leaked_key_is_revoked_under_load_while_another_tenants_secret_is_broken(
    namespace: Namespace, untouched: str, tmp_path: Path
) -> None:
    other = TENANTS[21]
    with steady_load(namespace, untouched, tmp_path, KEYS) as load:
        patch_secret(namespace, other, second="sk-too-short")
        wait_until(
            lambda: namespace.condition(untouched, "ResolvedRefs").get("reason") == "SecretInvalid",
            SECONDS,
            "the broken Secret is told",
        )
        took = seconds_to_the_last_accepted_request(
            namespace,
            untouched,
            tmp_path / "leaked",
            key_of(SUBJECT),
            lambda: namespace.kubectl("delete", "secret", f"{SUBJECT}-keys", "--wait=false"),
        )
        assert took <= REVOKED_SECONDS, f"the key was accepted for {took:.1f} s after it was taken away"
        assert ask(namespace, untouched, key_of(other)) == 200, "its other keys are good"
        namespace.apply(fleet.secret(SUBJECT))
        patch_secret(namespace, other, second=key_of(other, 1))
        wait_until(lambda: ask(namespace, untouched, key_of(SUBJECT)) == 200, SECONDS, "it is let in again")
    assert not load.report.failed and not load.report.broken, (load.report.failed + load.report.broken)[:3]


@pytest.mark.parametrize("durability", ["Synced", "Written"])
def test_what_is_fixed_for_a_workers_life_rolls_the_workers(
    namespace: Namespace, two_workers: str, durability: str
) -> None:
    before = lives(namespace, two_workers).keys()
    ledger = {"durability": durability, "volume": {"storageClassName": "lab-shared", "size": "1Gi"}}
    namespace.apply(fleet.gateway(two_workers, replicas=2, ledger=ledger))
    wait_until(
        lambda: Gateway(namespace, two_workers).settled(2) and not lives(namespace, two_workers).keys() & before,
        180,
        "every worker is replaced",
    )

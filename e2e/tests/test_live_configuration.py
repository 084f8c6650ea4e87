"""Changes of the configuration that workers load while they run: no pod is replaced, and no request fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.kubernetes import PATIENCE, Namespace, wait_until
from e2e.load import steady_load
from e2e.operations import Gateway, rotate_key
from e2e.revocation import seconds_to_the_last_accepted_request
from e2e.tests import fleet
from e2e.tests.fleet import TENANTS, key_of
from e2e.tests.traffic import ask, nobody_noticed, records

RULE = {"id": "codename", "reason": "It names a project.", "literals": ["bluebird"], "action": "Block"}
#: A tenant that sends no requests of the load.
SUBJECT = TENANTS[20]
KEYS = [key_of(tenant) for tenant in TENANTS[:12]]


def lives(namespace: Namespace, gateway: str) -> dict[str, Any]:
    """Every pod of workers and HAProxy, with the restart counts of its containers."""
    return {
        pod["metadata"]["uid"]: [status["restartCount"] for status in pod["status"].get("containerStatuses", [])]
        for component in ("worker", "load-balancer")
        for pod in Gateway(namespace, gateway).pods(component)
    }


@pytest.fixture(autouse=True)
def same_pods(namespace: Namespace, gateway: str) -> Iterator[None]:
    """Checks that no test of this module replaces a pod or restarts its containers."""
    before = lives(namespace, gateway)
    yield
    assert lives(namespace, gateway) == before


def test_a_configuration_that_can_be_taken_on_replaces_nobody(
    namespace: Namespace, two_workers: str, tmp_path: Path
) -> None:
    assert ask(namespace, two_workers, key_of(SUBJECT), "tell me of bluebird") == 200
    with steady_load(namespace, two_workers, tmp_path, KEYS) as load:
        namespace.apply(fleet.gateway(two_workers, replicas=2, policy={"rules": [RULE]}))
        wait_until(
            lambda: ask(namespace, two_workers, key_of(SUBJECT), "tell me of bluebird") == 403,
            PATIENCE,
            "the rule holds",
        )
    nobody_noticed(load.report)
    changed = [record for record in records(namespace, two_workers) if record["kind"] == "config"]
    assert changed, "the ledger tells that the configuration changed"


def test_a_key_is_rotated_without_replacing_a_pod(namespace: Namespace, two_workers: str, tmp_path: Path) -> None:
    new, secret = "sk-e2e-rotated-0123456789abcdef", f"{SUBJECT}-keys"
    fleet_gateway = Gateway(namespace, two_workers)
    with steady_load(namespace, two_workers, tmp_path, KEYS) as load:
        rotate_key(fleet_gateway, secret, "second", new)
        wait_until(lambda: ask(namespace, two_workers, new) == 200, PATIENCE, "the new key is let in")
        assert ask(namespace, two_workers, key_of(SUBJECT)) == 200
        rotate_key(fleet_gateway, secret, "second", key_of(SUBJECT, 1))
        wait_until(lambda: ask(namespace, two_workers, new) == 401, PATIENCE, "the new key is refused again")
    nobody_noticed(load.report)


def test_a_leaked_key_is_revoked_under_load_while_another_tenants_secret_is_broken(
    namespace: Namespace, two_workers: str, tmp_path: Path
) -> None:
    other = TENANTS[21]
    with steady_load(namespace, two_workers, tmp_path, KEYS) as load:
        rotate_key(Gateway(namespace, two_workers), f"{other}-keys", "second", "sk-too-short")
        wait_until(
            lambda: namespace.condition(two_workers, "ResolvedRefs").get("reason") == "SecretInvalid",
            PATIENCE,
            "the broken Secret is told",
        )
        # `make bench-operator` measures how long this takes.
        seconds_to_the_last_accepted_request(
            namespace,
            two_workers,
            tmp_path / "leaked",
            key_of(SUBJECT),
            lambda: namespace.delete("secret", f"{SUBJECT}-keys"),
        )
        assert ask(namespace, two_workers, key_of(other)) == 200, "its other keys are good"
        namespace.apply(fleet.secret(SUBJECT), fleet.secret(other))
        wait_until(lambda: ask(namespace, two_workers, key_of(SUBJECT)) == 200, PATIENCE, "it is let in again")
    nobody_noticed(load.report)

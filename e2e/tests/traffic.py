"""Traffic through a gateway's Service, sent from inside the cluster's network."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from e2e import evidence
from e2e.kubernetes import PATIENCE, Namespace, ledger_directory, wait_until
from e2e.lab_network import Answer, connects, each_inside, exchange, inside
from e2e.load import Report, SteadyLoad
from e2e.tests.fleet import MODEL, TENANTS, key_of

#: The keys of the tenants in a load, by default.
LOADED = [key_of(tenant) for tenant in TENANTS[:12]]
#: Runs an action under a load, and returns the load's report.
Runner = Callable[[Callable[[SteadyLoad], None]], Report]


def url(namespace: Namespace, gateway: str) -> str:
    """The base URL of a gateway inside the cluster."""
    return f"http://{namespace.service_address(gateway)}/v1"


def wait_reachable(namespace: Namespace, gateway: str, port: int = 80) -> None:
    """Waits until the Service of a Ready gateway accepts connections.

    The operator and kube-proxy learn of the first endpoint at the same time, and kube-proxy needs longer.
    """
    address = namespace.service_address(gateway)
    wait_until(lambda: inside(connects, address, port), PATIENCE, f"the Service {gateway} takes connections")


def _chat(base: str, key: str, text: str) -> Answer:
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": text}]})
    return exchange("POST", f"{base}/chat/completions", body, {"Authorization": f"Bearer {key}"})


def ask(namespace: Namespace, gateway: str, key: str, text: str = "hi") -> int:
    """The status of one request through the Service on a new connection; prints the body of an error."""
    answer = inside(_chat, url(namespace, gateway), key, text)
    if answer.status != 200:
        print(answer.status, answer.text)
    return answer.status


def owners(namespace: Namespace, gateway: str, keys: dict[str, str]) -> dict[str, str]:
    """The worker that serves each key, from the ledger. Raises AssertionError if more than one worker served a key."""
    base = url(namespace, gateway)

    def asked(key: str) -> str:
        answer = _chat(base, key, "who serves me")
        assert answer.status == 200, answer
        return answer.headers["x-request-id"]

    requests = dict(zip(keys, each_inside(asked, keys.values()), strict=True))
    ledger = ledger_directory(namespace, gateway)

    def recorded() -> dict[int, set[Any]]:
        shards = [int(path.name) for path in ledger.iterdir() if path.name.isdigit()]
        found = {shard: {record.get("id") for record in evidence.records(ledger, str(shard))} for shard in shards}
        return found if set(requests.values()) <= set().union(*found.values()) else {}

    shards = wait_until(recorded, PATIENCE, "all requests are recorded")
    found = {
        label: [f"{gateway}-worker-{shard}" for shard, served in shards.items() if request in served]
        for label, request in requests.items()
    }
    assert all(len(served) == 1 for served in found.values()), found
    return {label: served[0] for label, served in found.items()}


def settled_owners(namespace: Namespace, gateway: str, keys: dict[str, str]) -> dict[str, str]:
    """The owners after two equal checks in a row, when every HAProxy has the operator's newest configuration."""
    last: dict[str, str] = {}

    def settled() -> dict[str, str] | None:
        nonlocal last
        now = owners(namespace, gateway, keys)
        same, last = now == last, now
        return now if same else None

    return wait_until(settled, PATIENCE, "the tenants have settled", every=1) or {}


def nobody_noticed(report: Report) -> None:
    """Checks that every request of a load was answered completely and once, and is in the ledger."""
    assert report.whole
    assert not report.failed, report.failed[:3]
    assert not report.broken, report.broken[:3]
    assert not report.lost, report.lost[:3]
    assert not report.repeated, report.repeated[:3]
    assert {one.id for one in report.whole} == set(report.seen)


def first_keys() -> dict[str, str]:
    """Each tenant's first key, under the tenant's name."""
    return {tenant: key_of(tenant) for tenant in TENANTS}


def records(namespace: Namespace, gateway: str) -> list[dict[str, Any]]:
    """Every record on a gateway's volume, each with its incarnation under `log`."""
    return evidence.records(ledger_directory(namespace, gateway))

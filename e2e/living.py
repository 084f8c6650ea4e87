"""A ledger of three shards and an auditor. All tenants but one are on the worker that HAProxy's ring assigns."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from proofgate import _core
from proofgate.haproxy_sidecar.ring import HashRing

from e2e.auditing import AUDITOR, Audit, following
from e2e.indexed import READERS
from e2e.local_gateway import MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until

SHARDS = (0, 1, 2)
TENANTS = ("acme", "globex", "initech", "umbrella", "hooli", "stark", "wayne", "tyrell", "cyberdyne", "soylent")
#: The tenant that is placed on a different worker than the ring's.
PLACED = "wayne"


def key_of(tenant: str) -> str:
    """A tenant's key."""
    return f"{tenant}-demo-key-0123456789abcdef"


def _tenant(number: int, name: str) -> dict[str, Any]:
    limits = {"tokensPerDay": 400 * (1 + number % 3), "requestsPerMinute": 600, "dollarsPerMonth": str(20 + number)}
    return {
        "name": name,
        "keyHashes": [_core.hash_api_key(key_of(name))],
        **({"limits": limits} if number % 4 != 3 else {}),
        **({"modelBudgets": [{"model": MODEL, "dollarsPerDay": "5"}]} if number % 5 == 0 else {}),
    }


_SETTINGS: dict[str, Any] = {
    "prices": [{"model": MODEL, "effectiveFrom": "2026-01-01", "input": "2500", "output": "10000"}],
    "models": [{"name": MODEL, "provider": "mock", "maxOutputTokens": 64}],
    "tenants": [_tenant(number, name) for number, name in enumerate(TENANTS)],
}


def home(tenant: str) -> int:
    """The shard that serves a tenant."""
    shard = HashRing(SHARDS).shard_for(tenant)
    assert shard is not None
    return (shard + 1) % len(SHARDS) if tenant == PLACED else shard


def _serve(gateway: LocalGateway, shard: int) -> set[str]:
    """Sends requests of a shard's tenants, except the last tenant of all; returns these tenants."""
    asked = {tenant: number for number, tenant in enumerate(TENANTS[:-1]) if home(tenant) == shard}
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    for tenant, number in asked.items():
        headers = {"Authorization": f"Bearer {key_of(tenant)}"}
        for _ in range(2 + 3 * number % 7):
            url = f"{gateway.base_url}/chat/completions"
            httpx.post(url, json=body, headers=headers, timeout=PATIENCE).raise_for_status()
    return set(asked)


@contextmanager
def living(folder: Path) -> Iterator[str]:
    """The address of the auditor, whose index has every exchange. The last tenant has never asked."""
    with local_gateway(folder, settings=_SETTINGS) as gateway:
        secret, _ = _core.generate_key(AUDITOR)
        (folder / "auditor-key").write_text(secret)
        readers = {_core.hash_api_key(READERS["officer"]): {"name": "officer", "all": True}}
        (folder / "readers").write_text(json.dumps(readers))
        arguments = ["--new-aggregate", "--index", str(folder / "index"), "--readers", str(folder / "readers")]
        with following(Audit(folder, gateway.verifying_key), *arguments) as (_, url):
            for shard in SHARDS:
                if shard:
                    assert gateway.worker is not None
                    # A drained worker seals its log, and its shard is no longer on the ring.
                    gateway.worker.stop(signal.SIGKILL)
                    gateway.start_worker(shard=shard)
                asked = _serve(gateway, shard)
                wait_until(partial(_is_told, url, asked), PATIENCE, "the tenants are in the index")
            yield url


def _is_told(url: str, asked: set[str]) -> bool:
    """Whether the index contains the exchanges of the given tenants."""
    answer = httpx.get(f"{url}/v1/budgets", headers={"Authorization": f"Bearer {READERS['officer']}"}, timeout=PATIENCE)
    tenants = answer.json()["tenants"] if answer.is_success else []
    return asked <= {of["tenant"] for of in tenants if of["recorded"] is not None and not of["spent"]["day"]["open"]}

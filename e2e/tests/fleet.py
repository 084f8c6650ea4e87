"""The tests' gateway with its keys: forty tenants, so that their distribution over workers can be checked."""

from __future__ import annotations

import base64
from typing import Any

from e2e.kubernetes import Object

MODEL = "gpt-4o-mini"
TENANTS = tuple(f"tenant-{number:02}" for number in range(40))
API_VERSION = "proofgate.dev/v1alpha1"
_KEYS = ("first", "second")
#: Small enough that the workers of all groups fit on the nodes.
WORKER = {"cpu": "200m", "memory": "512Mi"}
#: For gateways whose tests do not concern HAProxy, so that more gateways fit on the nodes.
ONE_BALANCER = {"replicas": 1}
#: On a busy machine, a connection to the upstream may take longer than the default of 5 s.
TIMEOUTS = {"drainSeconds": 20, "upstreamConnectSeconds": 60}
_UPSTREAM = "http://mock-upstream:9000/v1"


def key_of(tenant: str, number: int = 0) -> str:
    """One of a tenant's two keys."""
    return f"sk-e2e-{tenant}-{number}-0123456789abcdef"


def secrets() -> list[Object]:
    """The Secrets of all tenants' keys."""
    return [secret(tenant) for tenant in TENANTS]


def secret(tenant: str) -> Object:
    """The Secret of one tenant's keys."""
    keys = {name: base64.b64encode(key_of(tenant, number).encode()).decode() for number, name in enumerate(_KEYS)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{tenant}-keys"}, "data": keys}


def api_keys(tenant: str) -> list[Object]:
    """The manifest's list of a tenant's keys."""
    return [{"name": name, "secretRef": {"name": f"{tenant}-keys", "key": name}} for name in _KEYS]


def gateway(name: str, replicas: int, tenants: tuple[str, ...] = TENANTS, **spec: Any) -> Object:
    """A GovernanceGateway in front of the stand-in upstream; `spec` adds to its fields or replaces them."""
    return {
        "apiVersion": API_VERSION,
        "kind": "GovernanceGateway",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "worker": WORKER,
            "providers": [{"name": "mock", "type": "OpenAI", "baseURL": _UPSTREAM}],
            "models": [{"name": MODEL, "provider": "mock"}],
            "tenants": [{"name": tenant, "apiKeys": api_keys(tenant)} for tenant in tenants],
            "ledger": {"volume": {"storageClassName": "lab-shared", "size": "1Gi"}},
            "timeouts": TIMEOUTS,
            **spec,
        },
    }

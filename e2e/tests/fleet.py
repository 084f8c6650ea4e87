"""The gateway of the tests: forty tenants, so that shares can be told, and their keys."""

from __future__ import annotations

from typing import Any

from e2e.kubernetes import Object

MODEL = "gpt-4o-mini"
TENANTS = tuple(f"tenant-{number:02}" for number in range(40))
API_VERSION = "proofgate.dev/v1alpha1"


def key_of(tenant: str, number: int = 0) -> str:
    """One of a tenant's two keys."""
    return f"sk-e2e-{tenant}-{number}-0123456789abcdef"


def secrets() -> list[Object]:
    """The Secrets of all tenants' keys."""
    return [secret(tenant) for tenant in TENANTS]


def secret(tenant: str) -> Object:
    """The Secret of one tenant's keys."""
    keys = {"first": key_of(tenant, 0), "second": key_of(tenant, 1)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{tenant}-keys"}, "stringData": keys}


def api_keys(tenant: str) -> list[Object]:
    """A tenant's list of keys, as a gateway has it."""
    return [{"name": name, "secretRef": {"name": f"{tenant}-keys", "key": name}} for name in ("first", "second")]


def gateway(name: str, replicas: int, tenants: tuple[str, ...] = TENANTS, **spec: Any) -> Object:
    """A GovernanceGateway in front of the stand-in upstream; `spec` adds to its fields or replaces them."""
    return {
        "apiVersion": API_VERSION,
        "kind": "GovernanceGateway",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "worker": {"cpu": "1", "memory": "512Mi"},
            "providers": [
                {"name": "mock", "type": "OpenAI", "baseURL": "http://mock-upstream:9000/v1"},
                {"name": "down", "type": "OpenAI", "baseURL": "http://127.0.0.1:9/v1"},
            ],
            "models": [{"name": MODEL, "provider": "mock"}, {"name": "unreachable", "provider": "down"}],
            "tenants": [{"name": tenant, "apiKeys": api_keys(tenant)} for tenant in tenants],
            "ledger": {"volume": {"storageClassName": "lab-shared", "size": "1Gi"}},
            "timeouts": {"upstreamConnectSeconds": 2, "upstreamResponseSeconds": 3, "drainSeconds": 20},
            **spec,
        },
    }

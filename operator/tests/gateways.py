"""Gateways and Secrets for tests."""

import base64
import copy
from typing import Any

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import Defaults

Manifest = dict[str, Any]

DEFAULTS = Defaults(worker_image="worker:test", haproxy_image="haproxy:test")
NAMESPACE = "team"
UID = "11111111-2222-3333-4444-555555555555"

ACME_KEY = "sk-test-acme-0123456789abcdef"
ACME_OTHER_KEY = "sk-test-acme-fedcba9876543210"
GLOBEX_KEY = "sk-test-globex-0123456789abcdef"


def api_keys(secret_name: str, *entries: str) -> list[Manifest]:
    """Return a tenant's keys; each key has the name of its entry in the Secret."""
    return [{"name": name, "secretRef": {"name": secret_name, "key": name}} for name in entries]


SPEC: Manifest = {
    "replicas": 2,
    "providers": [
        {
            "name": "openai",
            "type": "OpenAI",
            "baseURL": "https://api.example.com/v1",
            "auth": {"type": "APIKey", "apiKeySecretRef": {"name": "openai", "key": "api-key"}},
        }
    ],
    "models": [
        {"name": "gpt-4o-mini", "provider": "openai"},
        {"name": "default", "provider": "openai", "upstreamModel": "gpt-4o"},
    ],
    "tenants": [
        {"name": "acme", "apiKeys": api_keys("acme-keys", "first", "second")},
        {"name": "globex", "apiKeys": api_keys("globex-keys", "only"), "models": ["gpt-4o-mini"]},
    ],
    "ledger": {"volume": {"storageClassName": "lab-shared", "size": "1Gi"}},
}


def manifest(spec: Manifest | None = None, name: str = "demo", **changes: Any) -> Manifest:
    """Return a gateway as the API server stores it; `changes` replace top-level fields of the spec."""
    return {
        "apiVersion": "proofgate.dev/v1alpha1",
        "kind": "GovernanceGateway",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": UID, "generation": 1},
        "spec": {**copy.deepcopy(spec or SPEC), **changes},
    }


def gateway(**changes: Any) -> Gateway:
    """Return a parsed gateway."""
    return Gateway.from_manifest(manifest(**changes))


def secret(name: str, **entries: str) -> Manifest:
    """Return a Secret as the API server stores it; an underscore in an entry's name becomes a dash."""
    data = {
        key.replace("_", "-"): base64.b64encode(value.encode()).decode() for key, value in entries.items()
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"},
        "data": data,
    }


def user_secrets() -> dict[str, Manifest | None]:
    """Return the Secrets that the gateway above refers to, and a Secret for an egress proxy."""
    return {
        "acme-keys": secret("acme-keys", first=ACME_KEY, second=ACME_OTHER_KEY),
        "globex-keys": secret("globex-keys", only=GLOBEX_KEY),
        "openai": secret("openai", api_key="sk-upstream-0123456789"),
        "proxy": secret("proxy", username="gateway", password="s3cret"),
    }

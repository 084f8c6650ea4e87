"""The CRD of GatewayTenants; `python -m proofgate_operator.api.tenant_crd` prints it."""

from typing import Any

from proofgate_operator.api.access import MAX_KEYS_PER_TENANT
from proofgate_operator.api.crd import (
    NEVER_OBSERVED,
    condition_schema,
    crd_manifest,
    observed_generation_schema,
    render_crd,
    to_structural,
)
from proofgate_operator.api.tenant import TENANT_KIND, TENANT_PLURAL, TENANT_ROOT_RULES, GatewayTenantSpec


def status_schema() -> dict[str, Any]:
    """Return the structural schema of `.status`."""
    key = {
        "type": "object",
        "required": ["name", "digest"],
        "properties": {
            "name": {"type": "string", "maxLength": 63, "description": "Name of the key in spec.apiKeys."},
            "digest": {
                "type": "string",
                "maxLength": 8,
                "description": "First digits of the key's SHA-256, as in records.",
            },
            "notAfter": {
                "type": "string",
                "format": "date-time",
                "description": "Time at which the key expires.",
            },
        },
    }
    return {
        "type": "object",
        "description": "Observed state of the tenant.",
        "default": dict(NEVER_OBSERVED),
        "properties": {
            "observedGeneration": observed_generation_schema(),
            "tenant": {
                "type": "string",
                "maxLength": 127,
                "description": "Name of the tenant in the ledger, in the claims of tokens and in metrics.",
            },
            "keyCount": {
                "type": "integer",
                "format": "int32",
                "description": "Number of accepted keys.",
            },
            "keys": {
                "type": "array",
                "description": "The accepted keys.",
                "maxItems": MAX_KEYS_PER_TENANT,
                "items": key,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "conditions": {
                "type": "array",
                "description": "Ready: all other conditions are True. Accepted: the gateway allows the "
                "tenant, and has the tenant's plan. KeysValid: every listed key is accepted. "
                "Programmed: the keys are written where the workers and HAProxy read them. "
                "Reconciling and Stalled are present only while they are True. Reconciling: work continues "
                "automatically. Stalled: the tenant needs attention.",
                "items": condition_schema(),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        },
    }


def tenant_crd() -> dict[str, Any]:
    """Return the CustomResourceDefinition of GatewayTenants."""
    generated = GatewayTenantSpec.model_json_schema(by_alias=True)
    schema = {
        "description": "A tenant of a GovernanceGateway, in the namespace of the tenant's team.",
        "required": ["spec"],
        "properties": {"spec": to_structural(generated, generated["$defs"]), "status": status_schema()},
        "x-kubernetes-validations": TENANT_ROOT_RULES,
    }
    accepted, ready = (f".status.conditions[?(@.type=='{kind}')].status" for kind in ("Accepted", "Ready"))
    columns = [
        {"name": "Gateway", "type": "string", "jsonPath": ".spec.gatewayRef.name"},
        {"name": "Plan", "type": "string", "jsonPath": ".spec.plan"},
        {"name": "Accepted", "type": "string", "jsonPath": accepted},
        {"name": "Ready", "type": "string", "jsonPath": ready},
        {"name": "Keys", "type": "integer", "jsonPath": ".status.keyCount"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    return crd_manifest(TENANT_KIND, TENANT_PLURAL, "gwt", schema, {"status": {}}, columns)


if __name__ == "__main__":
    print(render_crd(tenant_crd(), "tenant_crd"), end="")

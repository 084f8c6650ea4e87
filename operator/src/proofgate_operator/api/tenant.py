"""The `GatewayTenant` resource: a tenant in its own team's namespace, as frozen models.

Whoever may write one chooses among the plans of a gateway that lets its namespace attach, and lists its own
keys. It runs no pod, names no provider and sees no other tenant.
"""

from typing import Any

from proofgate_operator.api.access import ApiKeys
from proofgate_operator.api.fields import LENIENT, ResourceName, Section

TENANT_KIND = "GatewayTenant"
TENANT_PLURAL = "gatewaytenants"
#: What the name of a tenant's object may have: it is a word of the records and a part of a metric's label.
MAX_TENANT_NAME = 63


class GatewayRef(Section):
    """A gateway, in any namespace."""

    name: ResourceName
    """Name of the GovernanceGateway."""
    namespace: ResourceName | None = None
    """Namespace of the GovernanceGateway. Absent: the namespace of the tenant."""


class GatewayTenantSpec(Section):
    """A tenant of a gateway: its plan and its keys."""

    gateway_ref: GatewayRef
    """Gateway that the tenant uses. Its spec.allowedTenants must allow the tenant's namespace."""
    plan: ResourceName
    """Name of the tenant's plan, from the gateway's spec.plans."""
    api_keys: ApiKeys = ()
    """API keys of the tenant. Absent: the tenant uses tokens only, with the claim `<namespace>/<name>`."""


class GatewayTenant(Section):
    """One `GatewayTenant` object: its identity and its spec."""

    name: str
    namespace: str
    uid: str
    generation: int
    #: When it was made, in RFC 3339.
    created: str
    spec: GatewayTenantSpec

    @property
    def qualified_name(self) -> str:
        """Its name in the ledger, in claims, metrics and maps."""
        return f"{self.namespace}/{self.name}"

    @property
    def gateway_key(self) -> tuple[str, str]:
        """Namespace and name of its gateway."""
        return self.spec.gateway_ref.namespace or self.namespace, self.spec.gateway_ref.name

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of the Secrets that hold its keys, in its own namespace."""
        found = (key.secret_ref.name for key in self.spec.api_keys if key.secret_ref)
        return tuple(dict.fromkeys(found))

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> "GatewayTenant":
        """Read an object as the API server returns it."""
        metadata = manifest["metadata"]
        return cls(
            name=metadata["name"],
            namespace=metadata["namespace"],
            uid=metadata["uid"],
            generation=metadata.get("generation", 1),
            created=metadata.get("creationTimestamp") or "",
            spec=GatewayTenantSpec.model_validate(manifest["spec"], **LENIENT),
        )


#: Rules over the whole object.
TENANT_ROOT_RULES: list[dict[str, Any]] = [
    {
        "rule": f"self.metadata.name.size() <= {MAX_TENANT_NAME} &&"
        " self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "message": f"metadata.name must be at most {MAX_TENANT_NAME} lower-case letters, digits and dashes, "
        "because it is a part of the tenant's name",
    },
]


def referenced_gateway(manifest: dict[str, Any]) -> tuple[str, str] | None:
    """Return namespace and name of the gateway that an object names; None if it cannot be told."""
    reference = (manifest.get("spec") or {}).get("gatewayRef") or {}
    name = reference.get("name")
    if not isinstance(name, str) or not name:
        return None
    return reference.get("namespace") or manifest["metadata"]["namespace"], name

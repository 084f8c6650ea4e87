"""Models of the `GatewayTenant` resource: a tenant in its own team's namespace.

Its author chooses among the plans of a gateway that admits the namespace, and lists the tenant's keys. A
GatewayTenant runs no pod, names no provider and sees no other tenant.
"""

from typing import Any

from proofgate_operator.api.access import ApiKeys
from proofgate_operator.api.fields import LENIENT, ResourceName, Section

TENANT_KIND = "GatewayTenant"
TENANT_PLURAL = "gatewaytenants"
#: Limits of a tenant's name, which is used in records and in metric labels.
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
    #: The creation time of the object, in RFC 3339.
    created: str
    spec: GatewayTenantSpec

    @property
    def qualified_name(self) -> str:
        """The tenant's name in the ledger, in claims, metrics and maps: `<namespace>/<name>`."""
        return f"{self.namespace}/{self.name}"

    @property
    def gateway_key(self) -> tuple[str, str]:
        """Namespace and name of its gateway."""
        return self.spec.gateway_ref.namespace or self.namespace, self.spec.gateway_ref.name

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of the Secrets that contain the tenant's keys, in its own namespace."""
        found = (key.secret_ref.name for key in self.spec.api_keys if key.secret_ref)
        return tuple(dict.fromkeys(found))

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> "GatewayTenant":
        """Parse an object of the API server."""
        metadata = manifest["metadata"]
        return cls(
            name=metadata["name"],
            namespace=metadata["namespace"],
            uid=metadata["uid"],
            generation=metadata.get("generation", 1),
            created=metadata.get("creationTimestamp") or "",
            spec=GatewayTenantSpec.model_validate(manifest["spec"], **LENIENT),
        )


#: Rules over several fields of the whole object.
TENANT_ROOT_RULES: list[dict[str, Any]] = [
    {
        "rule": f"self.metadata.name.size() <= {MAX_TENANT_NAME} &&"
        " self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "message": f"metadata.name must be at most {MAX_TENANT_NAME} lower-case letters, digits and dashes, "
        "because it is a part of the tenant's name",
    },
]


def referenced_gateway(manifest: dict[str, Any]) -> tuple[str, str] | None:
    """Return namespace and name of the gateway that an object names; None if it names none."""
    reference = (manifest.get("spec") or {}).get("gatewayRef") or {}
    name = reference.get("name")
    if not isinstance(name, str) or not name:
        return None
    return reference.get("namespace") or manifest["metadata"]["namespace"], name

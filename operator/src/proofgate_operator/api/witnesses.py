"""The section `witnesses`: who cosigns the auditor's log of tree heads."""

from typing import Annotated, Any

from pydantic import Field

from proofgate_operator.api.fields import LIST_TYPE_SET, Cidr, ConfigMapKeyRef, SecretKeyRef, Section

#: Rules over several fields of the section.
WITNESS_RULES: tuple[dict[str, Any], ...] = (
    {
        "rule": "!has(self.caSecretRef) || !has(self.caConfigMapRef)",
        "message": "spec.auditor.witnesses: set caSecretRef or caConfigMapRef, not both",
    },
)


class WitnessEgress(Section):
    """Addresses to which the auditor may connect to reach witnesses."""

    allow: Annotated[tuple[Cidr, ...], Field(min_length=1, max_length=32, json_schema_extra=LIST_TYPE_SET)]
    """Allowed address ranges, for example 192.0.2.0/24. A witness's name must resolve to an address in one of
    them."""


class Witnesses(Section):
    """Witnesses that cosign the auditor's log of tree heads (c2sp.org/tlog-witness)."""

    policy: Annotated[str, Field(min_length=1, max_length=16_384)]
    """Trust policy in the format of c2sp.org/tlog-policy: witnesses with their keys and URLs, and the
    quorum that must cosign a checkpoint before it is published. The policy contains no secrets, and
    clients verify with it. An invalid policy is not rolled out (WitnessPolicyInvalid). A change replaces
    the auditor's pod."""
    allow_http: bool = False
    """True: witnesses may use http. Only for a trusted network."""
    egress: WitnessEgress | None = None
    """Addresses of the witnesses in the auditor's network policy. Absent: any address, at the ports of the
    policy's URLs."""
    ca_secret_ref: SecretKeyRef | None = None
    """Entry of a Secret with CA certificates (PEM) to trust instead of the system's. A change is used within
    about two minutes."""
    ca_config_map_ref: ConfigMapKeyRef | None = None
    """Entry of a ConfigMap with CA certificates (PEM), instead of caSecretRef. The operator does not read the
    ConfigMap; the auditor reports problems with the certificates."""
    deadline_seconds: Annotated[int, Field(ge=10, le=86_400)] = 300
    """Seconds that tree heads may wait for a quorum before condition Audited becomes False (NotCosigned)."""

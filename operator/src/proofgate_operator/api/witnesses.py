"""The part of the spec that says who cosigns the auditor's log of heads."""

from typing import Annotated, Any

from pydantic import Field

from proofgate_operator.api.fields import SET, Cidr, ConfigMapKeyRef, SecretKeyRef, Section

#: Rules over the fields of the witnesses.
WITNESS_RULES: tuple[dict[str, Any], ...] = (
    {
        "rule": "!has(self.caSecretRef) || !has(self.caConfigMapRef)",
        "message": "spec.auditor.witnesses: set caSecretRef or caConfigMapRef, not both",
    },
)


class WitnessEgress(Section):
    """Where the auditor may connect to ask witnesses, by address."""

    allow: Annotated[tuple[Cidr, ...], Field(min_length=1, max_length=32, json_schema_extra=SET)]
    """Ranges of addresses, for example 192.0.2.0/24: what a witness's name resolves to must be in one."""


class Witnesses(Section):
    """Who cosigns the auditor's log of heads (c2sp.org/tlog-witness)."""

    policy: Annotated[str, Field(min_length=1, max_length=16_384)]
    """The trust policy, as c2sp.org/tlog-policy has it: witnesses with their keys and URLs, and which of them
    have to cosign a checkpoint before it is published. It holds no secrets, and is what clients verify with.
    One that cannot be used is not rolled out (WitnessPolicyInvalid); another one replaces the auditor's
    pod."""
    allow_http: bool = False
    """True: witnesses are asked over http, too, in a network that you trust."""
    egress: WitnessEgress | None = None
    """Where witnesses are, in the auditor's network policy. Absent: anywhere, at the ports of the policy's
    URLs."""
    ca_secret_ref: SecretKeyRef | None = None
    """Certificates of the authorities to trust in the place of the system's, PEM, in a Secret. A change is
    used within a minute or two."""
    ca_config_map_ref: ConfigMapKeyRef | None = None
    """The same in a ConfigMap. The operator reads none of yours: what is wrong with it, the auditor says."""
    deadline_seconds: Annotated[int, Field(ge=10, le=86_400)] = 300
    """How long heads may wait for a quorum until Audited is False (NotCosigned)."""

"""The part of the spec that says where the auditor copies to what it has verified."""

from enum import StrEnum
from typing import Annotated, Any

from proofgate_schema.urls import PORT
from pydantic import Field

from proofgate_operator.api.fields import SET, Cidr, ConfigMapKeyRef, ObjectName, SecretKeyRef, Section

_ENDPOINT = rf"^https?://[A-Za-z0-9.-]+{PORT}$"

#: Rules over the fields of one mirror.
MIRROR_RULES: tuple[dict[str, Any], ...] = (
    {
        "rule": "!has(self.caSecretRef) || !has(self.caConfigMapRef)",
        "message": "spec.auditor.mirrors: set caSecretRef or caConfigMapRef, not both",
    },
    {
        "rule": "self.allowHttp || self.endpoint.startsWith('https://')",
        "message": "spec.auditor.mirrors: use an https endpoint, or allowHttp in a network that you trust",
    },
)


class LockMode(StrEnum):
    """Who may remove an object before its time."""

    COMPLIANCE = "Compliance"
    GOVERNANCE = "Governance"


class ObjectLock(Section):
    """How long each object stays, from when it is written."""

    mode: LockMode
    """Compliance: nobody removes an object before its time. Governance: who may bypass that."""
    days: Annotated[int, Field(ge=1, le=36_500)]
    """Days. What is mirrored stays for at least as long, whatever is removed from the ledger."""


class MirrorEgress(Section):
    """Where the auditor may connect to reach the mirror, by address."""

    allow: Annotated[tuple[Cidr, ...], Field(min_length=1, max_length=32, json_schema_extra=SET)]
    """Ranges of addresses, for example 192.0.2.0/24: what the endpoint's name resolves to must be in one."""


class CredentialsRef(Section):
    """A Secret in the gateway's namespace."""

    name: ObjectName
    """Name of the Secret."""


class Mirror(Section):
    """A bucket of an S3-compatible store, versioned and with object lock."""

    bucket: Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
    """The bucket. It is made with versions and object lock; otherwise nothing is written."""
    prefix: Annotated[
        str,
        Field(max_length=256, pattern=r"^([A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)?$"),
    ] = ""
    """What the keys of this ledger begin with. Two ledgers never share one."""
    endpoint: Annotated[str, Field(max_length=512, pattern=_ENDPOINT)]
    """URL of the store, without a path: objects have the address endpoint/bucket/key."""
    region: Annotated[str, Field(max_length=64, pattern=r"^[a-z0-9-]+$")] = "us-east-1"
    """The region that requests are signed for."""
    object_lock: ObjectLock
    """How long each object stays."""
    credentials_secret_ref: CredentialsRef
    """A Secret with the entries AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for temporary ones,
    AWS_SESSION_TOKEN. The operator does not read it; a change is used within a minute or two."""
    allow_http: bool = False
    """True: the endpoint may have http, in a network that you trust."""
    egress: MirrorEgress | None = None
    """Where the store is, in the auditor's network policy. Absent: anywhere, at the endpoint's port."""
    ca_secret_ref: SecretKeyRef | None = None
    """Certificates of the authorities to trust in the place of the system's, PEM, in a Secret."""
    ca_config_map_ref: ConfigMapKeyRef | None = None
    """The same in a ConfigMap."""

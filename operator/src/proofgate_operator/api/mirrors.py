"""The section `mirrors`: the buckets to which the auditor copies verified records."""

from enum import StrEnum
from typing import Annotated, Any

from proofgate_schema.urls import PORT
from pydantic import Field

from proofgate_operator.api.fields import (
    LIST_TYPE_SET,
    Cidr,
    ConfigMapKeyRef,
    ObjectName,
    SecretKeyRef,
    Section,
)

_ENDPOINT = rf"^https?://[A-Za-z0-9.-]+{PORT}$"

#: Rules over several fields of one mirror.
MIRROR_RULES: tuple[dict[str, Any], ...] = (
    {
        "rule": "!has(self.caSecretRef) || !has(self.caConfigMapRef)",
        "message": "spec.auditor.mirrors: set caSecretRef or caConfigMapRef, not both",
    },
    {
        "rule": "self.allowHttp || self.endpoint.startsWith('https://')",
        "message": "spec.auditor.mirrors: use an https endpoint, or set allowHttp in a network that you "
        "trust",
    },
)


class LockMode(StrEnum):
    """The accounts that may remove an object before its lock expires."""

    COMPLIANCE = "Compliance"
    GOVERNANCE = "Governance"


class ObjectLock(Section):
    """Lock of objects, counted from the time they are written."""

    mode: LockMode
    """Object lock mode. Compliance: nobody can remove an object before the lock expires. Governance: accounts
    with permission to bypass the lock can remove it."""
    days: Annotated[int, Field(ge=1, le=36_500)]
    """Days for which an object is locked. The object is kept at least this long, even if the ledger's copy is
    removed."""


class MirrorEgress(Section):
    """Addresses to which the auditor may connect to reach the mirror."""

    allow: Annotated[tuple[Cidr, ...], Field(min_length=1, max_length=32, json_schema_extra=LIST_TYPE_SET)]
    """Allowed address ranges, for example 192.0.2.0/24. The endpoint's name must resolve to an address in one
    of them."""


class CredentialsRef(Section):
    """A Secret in the gateway's namespace."""

    name: ObjectName
    """Name of the Secret."""


class Mirror(Section):
    """A bucket of an S3-compatible store, with versioning and object lock."""

    bucket: Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
    """Name of the bucket. Versioning and object lock must be enabled for the bucket; otherwise nothing is
    written to it."""
    prefix: Annotated[
        str,
        Field(max_length=256, pattern=r"^([A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)?$"),
    ] = ""
    """Prefix of this ledger's object keys. Two ledgers must not share a prefix."""
    endpoint: Annotated[str, Field(max_length=512, pattern=_ENDPOINT)]
    """URL of the store, without a path. Objects are at endpoint/bucket/key."""
    region: Annotated[str, Field(max_length=64, pattern=r"^[a-z0-9-]+$")] = "us-east-1"
    """Region for which requests are signed."""
    object_lock: ObjectLock
    """Lock of the objects in the bucket."""
    credentials_secret_ref: CredentialsRef
    """Secret with the entries AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for temporary credentials,
    AWS_SESSION_TOKEN. The operator does not read it. A change is used within about two minutes."""
    allow_http: bool = False
    """True: the endpoint may use http. Only for a trusted network."""
    egress: MirrorEgress | None = None
    """Addresses of the store in the auditor's network policy. Absent: any address, at the endpoint's port."""
    ca_secret_ref: SecretKeyRef | None = None
    """Entry of a Secret with CA certificates (PEM) to trust instead of the system's."""
    ca_config_map_ref: ConfigMapKeyRef | None = None
    """Entry of a ConfigMap with CA certificates (PEM), instead of caSecretRef."""

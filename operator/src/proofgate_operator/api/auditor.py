"""The section `auditor`, which makes an auditor follow the ledger. It does not affect the workers."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from proofgate_operator.api.fields import Cores, ObjectName, Quantity, Section, cel_rules, list_map_key
from proofgate_operator.api.index import INDEX_MEMORY, Index
from proofgate_operator.api.ledger import SigningKeyRef
from proofgate_operator.api.load_balancer import Peer, peer_rule
from proofgate_operator.api.mirrors import MIRROR_RULES, Mirror
from proofgate_operator.api.pod_template import PodTemplate
from proofgate_operator.api.siem import SINK_RULES, Sink
from proofgate_operator.api.witnesses import WITNESS_RULES, Witnesses


class StateAccessMode(StrEnum):
    """Which pods may mount the auditor's state."""

    READ_WRITE_ONCE = "ReadWriteOnce"
    READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class AuditorStorage(Section):
    """The volume for the state of the auditor or of the retention job. No worker mounts it."""

    size: Quantity = "1Gi"
    """Size of the claim. You can increase it if the storage class allows expansion. You cannot decrease
    it."""
    storage_class_name: Annotated[
        str | None, Field(max_length=253, pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")
    ] = None
    """Storage class of the claim. Absent: the cluster's default. Immutable."""
    access_mode: StateAccessMode = StateAccessMode.READ_WRITE_ONCE
    """Access mode of the claim. ReadWriteOncePod: the cluster also ensures that only one pod mounts it, if
    the storage class supports that. Immutable."""
    existing_claim: ObjectName | None = None
    """Name of an existing claim to use. The operator never changes or deletes it. Absent: the operator
    creates one."""


#: Pattern of a verifying key: `name+hash+base64`.
_VERIFYING_KEY = r"^[^+\s]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+={0,2}$"


def storage_rules(place: str) -> tuple[dict[str, Any], ...]:
    """Return the rules for the claim of a state; `place` is the path of its section in the spec."""
    return (
        {
            "rule": "has(self.storageClassName) == has(oldSelf.storageClassName) &&"
            " (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",
            "message": f"{place}.storageClassName is immutable",
        },
        {
            "rule": "self.accessMode == oldSelf.accessMode",
            "fieldPath": ".accessMode",
            "message": f"{place}.accessMode is immutable",
        },
        {
            "rule": "quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0",
            "fieldPath": ".size",
            "message": f"{place}.size can grow but not shrink",
        },
        {
            "rule": "!has(self.existingClaim) || !has(self.storageClassName)",
            "message": f"{place}: set existingClaim or storageClassName, not both",
        },
    )


class Auditor(Section):
    """An auditor of the ledger: it reads the volume, verifies it continuously, and signs a log of all tree
    heads."""

    enabled: bool = True
    """False: the auditor does not run. Its state and the stored copy of its newest checkpoint (ConfigMap
    <gateway>-auditor) are kept, and the auditor continues from them when it is enabled again."""
    signing_key_secret_ref: SigningKeyRef
    """Entry of a Secret with the auditor's signing key, as `proofgate keys generate` writes it. The key's
    name is the name of the auditor's log. It must not be the ledger's name, nor a path above or below that
    name. A different key with the same name is refused. A key with another name starts another log, which
    needs new storage."""
    storage: Annotated[
        AuditorStorage, Field(json_schema_extra=cel_rules(*storage_rules("spec.auditor.storage")))
    ] = AuditorStorage()
    """Volume for the auditor's state."""
    keeping_key: Annotated[str | None, Field(max_length=512, pattern=_VERIFYING_KEY)] = None
    """Public key that verifies tombstones. A log that was removed under a tombstone signed with this key is
    reported as removed, and is not a finding. The key must differ from those of the ledger and the auditor.
    Set it before the first removal. With spec.keeping this field is optional, and must be the public key of
    the retention key."""
    beat_seconds: Annotated[int, Field(ge=1, le=3600)] = 10
    """Seconds between two entries in the auditor's log about the same log of the ledger, while that log
    grows. Each entry is a tree head: the size and the root of the log."""
    second_look_seconds: Annotated[int, Field(ge=1, le=3600)] = 5
    """Seconds after which a suspected problem is checked again before it is reported as a finding. Set it
    higher than the attribute cache of the network file system, for example 60 for NFS with the default
    acregmax and acdirmax."""
    stall_seconds: Annotated[int, Field(ge=1, le=86_400)] = 30
    """Seconds that records may wait for a checkpoint before the delay is a finding. At least twice
    `ledger.checkpointIntervalSeconds`."""
    scrub_mebibytes: Annotated[int, Field(ge=0, le=4096)] = 8
    """Mebibytes of old records that the auditor verifies again per second. 0: none."""
    cpu: Annotated[
        Cores,
        Field(
            json_schema_extra=cel_rules(
                {
                    "rule": "type(self) == int ? self >= 1 && self <= 16 :"
                    " self.matches('^([1-9]|1[0-6]|[1-9][0-9]{2,3}m)$')",
                    "message": "spec.auditor.cpu must be a whole number of cores from 1 to 16, or thousandths"
                    " of a core from 100m to 9999m",
                }
            )
        ),
    ] = "500m"
    """CPU cores of the auditor, for both request and limit. The auditor can use at most one core."""
    memory: Annotated[
        Quantity,
        Field(
            json_schema_extra=cel_rules(
                {
                    "rule": "quantity(self).compareTo(quantity('192Mi')) >= 0",
                    "message": "spec.auditor.memory must be at least 192Mi",
                }
            )
        ),
    ] = "256Mi"
    """Memory of the auditor, for both request and limit. Each log takes about three kilobytes."""
    allow_from: Annotated[
        tuple[Annotated[Peer, Field(json_schema_extra=cel_rules(peer_rule("spec.auditor.allowFrom")))], ...]
        | None,
        Field(min_length=1, max_length=32),
    ] = None
    """Peers that the network policy allows to reach the auditor's port, in addition to those that may read
    metrics. For example, programs that store the auditor's checkpoints in another place. Absent: none."""
    witnesses: Annotated[Witnesses | None, Field(json_schema_extra=cel_rules(*WITNESS_RULES))] = None
    """Witnesses that must cosign the auditor's log before it is published. Absent: none, and the auditor
    contacts no witness."""
    index: Index | None = None
    """An index of exchanges for readers with their own keys. Absent: none."""
    mirrors: Annotated[
        tuple[Annotated[Mirror, Field(json_schema_extra=cel_rules(*MIRROR_RULES))], ...],
        Field(max_length=4, json_schema_extra=list_map_key("bucket")),
    ] = ()
    """Buckets to which the auditor copies verified records and checkpoints, under object lock. With
    `ledger.volume.mode: PerWorker` the auditor first copies the workers' logs to its own volume, about 1 KiB
    for each exchange. The copies stay on this volume until every mirror has them. Absent: none."""
    siem: Annotated[
        tuple[Annotated[Sink, Field(json_schema_extra=cel_rules(*SINK_RULES))], ...],
        Field(max_length=4, json_schema_extra=list_map_key("url")),
    ] = ()
    """Sinks to which the auditor sends every exchange that it has verified. Absent: none."""
    pod_template: PodTemplate | None = None
    """Additions to the auditor's pod, such as a node selector."""

    @property
    def enabled_index(self) -> Index | None:
        """The enabled index; None if there is none."""
        return self.index if self.index is not None and self.index.enabled else None

    def secrets(self) -> Iterator[str]:
        """Yield the names of the Secrets that the auditor needs."""
        yield self.signing_key_secret_ref.name
        if self.witnesses is not None and self.witnesses.ca_secret_ref is not None:
            yield self.witnesses.ca_secret_ref.name
        if self.enabled_index is not None:
            yield from self.enabled_index.secrets()


AUDITOR_RULES = (
    {
        "rule": "!has(self.auditor) || self.networkPolicies == 'Managed' ||"
        " !self.auditor.mirrors.exists(m, has(m.egress))",
        "fieldPath": ".auditor.mirrors",
        "message": "spec.auditor.mirrors: egress needs spec.networkPolicies: Managed",
    },
    {
        "rule": "!has(self.auditor) || self.networkPolicies == 'Managed' ||"
        " !self.auditor.siem.exists(s, has(s.egress))",
        "fieldPath": ".auditor.siem",
        "message": "spec.auditor.siem: egress needs spec.networkPolicies: Managed",
    },
    {
        "rule": "!has(self.auditor) || self.networkPolicies == 'Managed' || !has(self.auditor.index) ||"
        " !has(self.auditor.index.oidc) || !has(self.auditor.index.oidc.egress)",
        "fieldPath": ".auditor.index.oidc.egress",
        "message": "spec.auditor.index.oidc.egress needs spec.networkPolicies: Managed",
    },
    {
        "rule": "!has(self.auditor) || !has(self.auditor.index) || !has(self.auditor.index.exportKey) ||"
        " has(self.auditor.index.readersSecretRef) || has(self.auditor.index.oidc)",
        "fieldPath": ".auditor.index.exportKey",
        "message": "spec.auditor.index.exportKey signs the exports that readers download: set "
        "readersSecretRef or oidc to define readers",
    },
    {
        "rule": "!has(self.auditor) || self.networkPolicies == 'Managed' || !has(self.auditor.allowFrom)",
        "fieldPath": ".auditor.allowFrom",
        "message": "spec.auditor.allowFrom needs spec.networkPolicies: Managed",
    },
    {
        "rule": "!has(self.auditor) || self.networkPolicies == 'Managed' || !has(self.auditor.witnesses) ||"
        " !has(self.auditor.witnesses.egress)",
        "fieldPath": ".auditor.witnesses.egress",
        "message": "spec.auditor.witnesses.egress needs spec.networkPolicies: Managed",
    },
    {
        "rule": "!has(self.auditor) || !has(self.auditor.index) || !self.auditor.index.enabled ||"
        f" quantity(self.auditor.memory).compareTo(quantity('{INDEX_MEMORY}')) >= 0",
        "fieldPath": ".auditor.memory",
        "message": f"spec.auditor.memory must be at least {INDEX_MEMORY} with spec.auditor.index",
    },
    {
        "rule": "!has(self.auditor) ||"
        " self.auditor.stallSeconds >= 2 * self.ledger.checkpointIntervalSeconds",
        "fieldPath": ".auditor.stallSeconds",
        "message": "spec.auditor.stallSeconds must be at least twice "
        "spec.ledger.checkpointIntervalSeconds; otherwise every normal wait for a checkpoint becomes a "
        "finding",
    },
)

"""The part of the spec that has an auditor follow the ledger. It changes nothing of the workers."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from proofgate_operator.api.fields import Cores, ObjectName, Quantity, Section, keyed_by, rules
from proofgate_operator.api.index import INDEX_MEMORY, Index
from proofgate_operator.api.ledger import SigningKeyRef
from proofgate_operator.api.load_balancer import Peer, peer_rule
from proofgate_operator.api.mirrors import MIRROR_RULES, Mirror
from proofgate_operator.api.pod_template import PodTemplate
from proofgate_operator.api.siem import SINK_RULES, Sink
from proofgate_operator.api.witnesses import WITNESS_RULES, Witnesses


class StateAccessMode(StrEnum):
    """Who may mount the auditor's state."""

    READ_WRITE_ONCE = "ReadWriteOnce"
    READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class AuditorStorage(Section):
    """Where an auditor, or a retention job, has its state: a volume that no worker mounts."""

    size: Quantity = "1Gi"
    """Size of the claim. It may grow where the storage class allows expansion, and never shrinks."""
    storage_class_name: Annotated[
        str | None, Field(max_length=253, pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")
    ] = None
    """Storage class of the claim. Absent: the cluster's default. Immutable."""
    access_mode: StateAccessMode = StateAccessMode.READ_WRITE_ONCE
    """ReadWriteOncePod: where the storage class offers it, the cluster too lets one pod alone mount the
    state. Immutable."""
    existing_claim: ObjectName | None = None
    """Use this claim instead of making one; the operator never changes or deletes it."""


#: `name+hash+base64`.
_VERIFYING_KEY = r"^[^+\s]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+={0,2}$"


def storage_rules(place: str) -> tuple[dict[str, Any], ...]:
    """Return the rules over the claim of a state; `place` is where the spec has it."""
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
    """An auditor of the ledger: it reads the volume, verifies it for ever, and signs a log of all heads."""

    enabled: bool = True
    """False: there is none. Its state and what is held of it stay, and it goes on with them when it is
    enabled again."""
    signing_key_secret_ref: SigningKeyRef
    """Entry of a Secret with the auditor's own key, as `proofgate keygen` writes it. Its name is that of the
    log of heads, and may be neither the ledger's nor above or below it. Another key of the same name is
    refused; one of another name begins another log of heads, which needs another state."""
    storage: Annotated[
        AuditorStorage, Field(json_schema_extra=rules(*storage_rules("spec.auditor.storage")))
    ] = AuditorStorage()
    """Where it keeps its state."""
    keeping_key: Annotated[str | None, Field(max_length=512, pattern=_VERIFYING_KEY)] = None
    """The verifying key of whoever may remove logs: one under a tombstone by it is told as removed, and is no
    finding. It is neither the ledger's nor the auditor's. Set it before the first removal. With spec.keeping
    it need not be set; if it is, it has to be the retention key."""
    beat_seconds: Annotated[int, Field(ge=1, le=3600)] = 10
    """Seconds between two heads of a log that goes on."""
    second_look_seconds: Annotated[int, Field(ge=1, le=3600)] = 5
    """After which what looks wrong is looked at again before it is a finding: more than the network file
    system keeps old attributes for, so 60 where acregmax and acdirmax have their defaults."""
    stall_seconds: Annotated[int, Field(ge=1, le=86_400)] = 30
    """Until records that wait for a checkpoint are a finding. At least twice
    `ledger.checkpointIntervalSeconds`."""
    scrub_mebibytes: Annotated[int, Field(ge=0, le=4096)] = 8
    """Of old records, how many are verified again in each second. 0: none are."""
    cpu: Annotated[
        Cores,
        Field(
            json_schema_extra=rules(
                {
                    "rule": "type(self) == int ? self >= 1 && self <= 16 :"
                    " self.matches('^([1-9]|1[0-6]|[1-9][0-9]{2,3}m)$')",
                    "message": "spec.auditor.cpu must be a whole number of cores from 1 to 16, or thousandths"
                    " of a core from 100m to 9999m",
                }
            )
        ),
    ] = "500m"
    """Cores of the auditor; request and limit are equal. One core is what it can use."""
    memory: Annotated[
        Quantity,
        Field(
            json_schema_extra=rules(
                {
                    "rule": "quantity(self).compareTo(quantity('192Mi')) >= 0",
                    "message": "spec.auditor.memory must be at least 192Mi",
                }
            )
        ),
    ] = "256Mi"
    """Memory of the auditor; request and limit are equal. A log takes about three kilobytes."""
    allow_from: Annotated[
        tuple[Annotated[Peer, Field(json_schema_extra=rules(peer_rule("spec.auditor.allowFrom")))], ...]
        | None,
        Field(min_length=1, max_length=32),
    ] = None
    """Who may read its port besides those who may read metrics, in a network policy: whoever keeps its
    checkpoints elsewhere. Absent: nobody."""
    witnesses: Annotated[Witnesses | None, Field(json_schema_extra=rules(*WITNESS_RULES))] = None
    """Who has to cosign its log of heads before it is published. Absent: nobody, and it calls nobody."""
    index: Index | None = None
    """An index of exchanges for readers with keys of their own. Absent: none."""
    mirrors: Annotated[
        tuple[Annotated[Mirror, Field(json_schema_extra=rules(*MIRROR_RULES))], ...],
        Field(max_length=4, json_schema_extra=keyed_by("bucket")),
    ] = ()
    """Where it copies to what it has verified, under object lock. Absent: nowhere."""
    siem: Annotated[
        tuple[Annotated[Sink, Field(json_schema_extra=rules(*SINK_RULES))], ...],
        Field(max_length=4, json_schema_extra=keyed_by("url")),
    ] = ()
    """Who gets every exchange that it has verified. Absent: nobody."""
    pod_template: PodTemplate | None = None
    """Additions to the auditor's pod: where it may run, for example."""

    @property
    def wanted_index(self) -> Index | None:
        """The index that it is to keep; None where it is to keep none."""
        return self.index if self.index is not None and self.index.enabled else None

    def secrets(self) -> Iterator[str]:
        """Return the names of the Secrets that it needs."""
        yield self.signing_key_secret_ref.name
        if self.witnesses is not None and self.witnesses.ca_secret_ref is not None:
            yield self.witnesses.ca_secret_ref.name
        if self.wanted_index is not None and self.wanted_index.readers_secret_ref is not None:
            yield self.wanted_index.readers_secret_ref.name


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
        "rule": "!has(self.auditor) || !self.auditor.enabled || self.ledger.volume.mode == 'Shared' ||"
        " self.auditor.mirrors.size() == 0 && self.auditor.siem.size() == 0 &&"
        " (!has(self.auditor.index) || !self.auditor.index.enabled)",
        "fieldPath": ".auditor",
        "message": "spec.auditor.index, mirrors and siem need spec.ledger.volume.mode Shared: they read "
        "a mounted volume, and no other pod can mount the volumes of workers that have one each",
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
        "message": "spec.auditor.stallSeconds must be at least twice spec.ledger.checkpointIntervalSeconds,"
        " or every normal wait for a checkpoint becomes a finding",
    },
)

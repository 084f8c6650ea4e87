"""Whose an object is, before it is overwritten: server-side apply with force would take anybody's."""

from enum import Enum

from proofgate_operator.api import KIND
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import GATEWAY_LABEL, MANAGED_BY_LABEL, OPERATOR, Manifest


class Ownership(Enum):
    """Standing of an object that bears a name the gateway uses."""

    ABSENT = "absent"
    OURS = "ours"
    #: On its way out; it is written anew once it is gone, never fought over.
    LEAVING = "leaving"
    FOREIGN = "foreign"


def classify(gateway: Gateway, live: Manifest | None) -> Ownership:
    """Return the standing of an object.

    Owned by this gateway, or labelled as its: ours. The label alone covers a volume that outlived an earlier
    gateway of the name.
    """
    if live is None:
        return Ownership.ABSENT
    metadata = live["metadata"]
    owners = metadata.get("ownerReferences") or []
    labels = metadata.get("labels") or {}
    labelled = labels.get(MANAGED_BY_LABEL) == OPERATOR and labels.get(GATEWAY_LABEL) == gateway.name
    if not labelled and all(owner["uid"] != gateway.uid for owner in owners):
        return Ownership.FOREIGN
    return Ownership.LEAVING if metadata.get("deletionTimestamp") else Ownership.OURS


def is_owned_by_predecessor(gateway: Gateway, live: Manifest) -> bool:
    """Return whether the garbage collector is about to take an object with a deleted gateway of the same
    name."""
    owners = [owner for owner in live["metadata"].get("ownerReferences") or [] if owner["kind"] == KIND]
    return bool(owners) and all(owner["uid"] != gateway.uid for owner in owners)

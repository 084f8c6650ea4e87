"""Determines the owner of an object before it is overwritten, because a forced server-side apply overwrites
any object."""

from enum import Enum

from proofgate_operator.api import KIND
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import GATEWAY_LABEL, MANAGED_BY_LABEL, OPERATOR, Manifest


class Ownership(Enum):
    """The ownership of an object whose name the gateway uses."""

    ABSENT = "absent"
    OURS = "ours"
    #: Being deleted; it is created again once it is gone.
    LEAVING = "leaving"
    FOREIGN = "foreign"


def classify(gateway: Gateway, live: Manifest | None) -> Ownership:
    """Return the ownership of an object.

    An object that this gateway owns, or that has its label, is ours. The label alone covers a volume that
    outlived a former gateway of the same name.
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
    """Return whether the garbage collector is about to delete an object of a deleted gateway with the same
    name."""
    owners = [owner for owner in live["metadata"].get("ownerReferences") or [] if owner["kind"] == KIND]
    return bool(owners) and all(owner["uid"] != gateway.uid for owner in owners)

"""The newest checkpoint of the auditor's log of heads, held where neither the ledger's volume nor the
auditor's is.

It is also the operator's memory of whether an auditor has begun. The auditor reads it at its start: where
none is held, an empty state is begun; where one is, the state has to contain it, so one that was lost or set
back stops it. Nothing else has to be remembered, so it does not matter where an operator is killed. What is
held of a log is only ever replaced by something newer, and logs of other names are kept beside it.
"""

from dataclasses import dataclass

from proofgate_schema.counts import format_count

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import auditor
from proofgate_operator.build.checkpoint import (
    AggregateCheckpoint,
    InvalidCheckpoint,
    read_aggregate_checkpoint,
)
from proofgate_operator.build.ledger_key import LedgerKey
from proofgate_operator.build.naming import Manifest, child_manifest, names
from proofgate_operator.build.storage import is_deleted_with_gateway
from proofgate_operator.plan.held_checkpoints import held_manifest
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.ownership import Ownership, classify, is_owned_by_predecessor


@dataclass(frozen=True)
class HeldAggregate:
    """What is to be held now.

    `manifest` is the ConfigMap to apply, None when nothing is to be written. `told` is what the auditor tells
    under its key; None when it told nothing that its key signed. `fork` and `setback` say what it tells
    against what is held.
    """

    manifest: Manifest | None = None
    reported: AggregateCheckpoint | None = None
    fork: str | None = None
    rollback: str | None = None


def held_aggregate(gateway: Gateway, seen: ObservedState, key: LedgerKey | None) -> HeldAggregate:
    """Return what is to be held of the log of heads of `key`, beside what is held already."""
    live = seen.child("ConfigMap", names(gateway).auditor)
    if classify(gateway, live) in (Ownership.LEAVING, Ownership.FOREIGN) or (
        # It goes with the evidence of a gateway that was deleted, and says nothing of this one's.
        live is not None and is_owned_by_predecessor(gateway, live)
    ):
        return HeldAggregate()
    data = dict((live or {}).get("data") or {})
    if key is None:
        return HeldAggregate(_written(gateway, seen, live, data, False))
    name = auditor.held_aggregate_entry(key.name)
    note = seen.audit_report.checkpoint if seen.audit_report else ""
    held, reported = _read(data.get(name), key), _read(note, key)
    fork = setback = None
    if held and reported and reported.size == held.size and reported.root != held.root:
        heads = format_count(reported.size, "tree head")
        fork = f"the auditor signed {heads} of {key.name} with a different root than before"
    if held and reported and reported.size < held.size:
        setback = (
            f"the auditor reports {format_count(reported.size, 'tree head')} of {key.name}, but the held "
            f"checkpoint has {held.size}"
        )
    first = name not in data
    # What stands there and is none of this key's is left: the auditor refuses it, and somebody has to look.
    if reported and (first or (held and reported.size > held.size)):
        data[name] = note
    return HeldAggregate(_written(gateway, seen, live, data, first), reported, fork, setback)


def _written(
    gateway: Gateway, seen: ObservedState, live: Manifest | None, data: dict[str, str], urgent: bool
) -> Manifest | None:
    owned = is_deleted_with_gateway(gateway)
    head = child_manifest(gateway, "v1", "ConfigMap", names(gateway).auditor, auditor.COMPONENT, owned=owned)
    return held_manifest(gateway, live, {**head, "data": data}, urgent and bool(data), seen.now)


def _read(note: str | None, key: LedgerKey) -> AggregateCheckpoint | None:
    for verifying_key in (key.verifying_text, *key.former_keys) if note else ():
        try:
            return read_aggregate_checkpoint(note or "", verifying_key)
        except InvalidCheckpoint:
            continue
    return None

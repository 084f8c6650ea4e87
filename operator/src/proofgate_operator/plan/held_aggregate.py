"""Holds the newest checkpoint of the auditor's log of tree heads outside the volumes of ledger and auditor.

The held checkpoint also records whether an auditor has started. The auditor reads it at its start: if none is
held, the auditor starts an empty state; if one is held, the state must contain it, so a lost or reset state
stops the auditor. Nothing else has to be remembered, so the operator may be killed at any time. A held
checkpoint is only replaced by a newer one. Checkpoints of logs with other names are kept next to it.
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
    """The result of comparing the held checkpoint with the reported one.

    `manifest` is the ConfigMap to apply, None if nothing has to be written. `reported` is the checkpoint that
    the auditor reports; None if it reports none that its key signed. `fork` and `rollback` describe how it
    contradicts the held checkpoint; None if it does not.
    """

    manifest: Manifest | None = None
    reported: AggregateCheckpoint | None = None
    fork: str | None = None
    rollback: str | None = None


def held_aggregate(gateway: Gateway, seen: ObservedState, key: LedgerKey | None) -> HeldAggregate:
    """Return the ConfigMap with the newest checkpoint of the log of `key`; other entries are kept."""
    live = seen.child("ConfigMap", names(gateway).auditor)
    if classify(gateway, live) in (Ownership.LEAVING, Ownership.FOREIGN) or (
        # The ConfigMap is deleted with the evidence of a former gateway and says nothing about this one.
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
    # An entry that this key did not sign is kept: the auditor refuses it, and a person has to check it.
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

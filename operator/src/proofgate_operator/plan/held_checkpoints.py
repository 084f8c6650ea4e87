"""Holds the newest checkpoint of each shard where no writer of the ledger's volume can change it.

A worker does not start on a volume that does not contain the held checkpoint of its shard, so resetting or
truncating the volume is detected. A held checkpoint is only replaced by a newer one, and dropped when its
claim is replaced. The operator keeps no other copy: a deleted entry is lost.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from proofgate_schema.counts import format_count

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.volume import VolumeMode
from proofgate_operator.build import checkpoint
from proofgate_operator.build.checkpoint import Checkpoint, InvalidCheckpoint
from proofgate_operator.build.naming import RENEWED_ANNOTATION, Manifest, child_manifest, names
from proofgate_operator.build.storage import is_deleted_with_gateway
from proofgate_operator.plan.drift import contains, with_digest
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.ownership import Ownership, classify
from proofgate_operator.plan.rfc3339 import seconds_of, time_of

#: Minimum seconds between two writes: a worker under load signs every second, and is polled as often while it
#: is about to leave.
HOLD_INTERVAL_SECONDS = 60
#: Annotation with the UID of the claim of each shard's entry.
CLAIMS_ANNOTATION = "proofgate.dev/claims"


@dataclass(frozen=True)
class HeldCheckpoints:
    """The result of comparing the held checkpoints with the reported ones.

    `manifest` is the ConfigMap to apply, None if nothing has to be written; it applies only to the observed
    version. `forks` describes shards with two contradicting checkpoints, `rollbacks` workers whose checkpoint
    is behind the held one.
    """

    manifest: Manifest | None = None
    forks: tuple[str, ...] = ()
    rollbacks: tuple[str, ...] = ()


def held_checkpoints(
    gateway: Gateway, seen: ObservedState, verifying_key: str | None, former_keys: Sequence[str] = ()
) -> HeldCheckpoints:
    """Return the ConfigMap with the newest checkpoints of the workers; other entries are kept.

    During a change of the signing key, some workers still sign with a former key.
    """
    live = seen.child("ConfigMap", names(gateway).checkpoints)
    if verifying_key is None or classify(gateway, live) in (Ownership.LEAVING, Ownership.FOREIGN):
        return HeldCheckpoints()
    before = dict((live or {}).get("data") or {})
    claimed = _claims(live)
    entries, claims = dict[str, str](), dict[str, str]()
    forks, setbacks = list[str](), list[str]()
    told = {
        str(number): report.checkpoint for number, report in seen.worker_reports.items() if report.checkpoint
    }
    for shard in sorted({*before, *told}):
        claim = _claim(gateway, seen, shard)
        note = before.get(shard)
        if claim and claimed.get(shard, claim) != claim:
            note = None
        keys = (verifying_key, *former_keys)
        kept, new = _read(note, shard, keys), _read(told.get(shard), shard, keys)
        if kept and new and kept.sort_key == new.sort_key and kept.root != new.root:
            forks.append(
                f"worker {shard} signed {format_count(new.size, 'record')} of {new.incarnation} with a "
                "different root than before"
            )
        if kept and new and kept.sort_key > new.sort_key:
            setbacks.append(
                f"worker {shard} reports {format_count(new.size, 'record')} of "
                f"{new.incarnation}, but the held checkpoint has {kept.size} of {kept.incarnation}"
            )
        if new and (kept is None or new.sort_key > kept.sort_key):
            note = told[shard]
        if note is not None:
            entries[shard] = note
            claims[shard] = claim or claimed.get(shard, "")
    # A dropped entry, the first entry of a shard and the last one of a leaving worker are written without
    # delay.
    leaving = (str(number) for number, report in seen.worker_reports.items() if report.idle)
    urgent = before.keys() != entries.keys() or any(before.get(n) != entries.get(n) for n in leaving)
    owned = is_deleted_with_gateway(gateway)
    head = child_manifest(gateway, "v1", "ConfigMap", names(gateway).checkpoints, "worker", owned=owned)
    annotations = head["metadata"].setdefault("annotations", {})
    annotations[CLAIMS_ANNOTATION] = json.dumps(claims, sort_keys=True)
    manifest = held_manifest(gateway, live, {**head, "data": entries}, urgent, seen.now)
    return HeldCheckpoints(manifest, tuple(forks), tuple(setbacks))


def held_manifest(
    gateway: Gateway, live: Manifest | None, wanted: Manifest, urgent: bool, now: float
) -> Manifest | None:
    """Return the ConfigMap `wanted` to apply to `live`; None if nothing has to be written.

    A write that is not `urgent` waits until a minute after the last write. An object that changed meanwhile
    is observed first.
    """
    if not wanted["data"] and live is None:
        return None
    owned = is_deleted_with_gateway(gateway)
    if live is not None:
        annotations = live["metadata"].get("annotations") or {}
        renewed = seconds_of(annotations.get(RENEWED_ANNOTATION))
        waits = renewed is not None and renewed <= now < renewed + HOLD_INTERVAL_SECONDS
        owners = live["metadata"].get("ownerReferences") or []
        as_owned = any(owner["uid"] == gateway.uid for owner in owners) is owned
        if as_owned and not urgent and (waits or contains(live, wanted)):
            return None
    wanted["metadata"].setdefault("annotations", {})[RENEWED_ANNOTATION] = time_of(now)
    manifest = with_digest(wanted)
    if live is not None:
        # The last writer may have stored something newer: observe again first.
        manifest["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
    return manifest


def _read(note: str | None, shard: str, verifying_keys: Sequence[str]) -> Checkpoint | None:
    """Parse a checkpoint of a shard that one of these keys signed; None if it is invalid."""
    for key in verifying_keys if note else ():
        try:
            found = checkpoint.read(note or "", key)
        except InvalidCheckpoint:
            continue
        return found if str(found.shard) == shard else None
    return None


def _claims(live: Manifest | None) -> dict[str, str]:
    annotations = ((live or {}).get("metadata") or {}).get("annotations") or {}
    try:
        found = json.loads(annotations.get(CLAIMS_ANNOTATION) or "{}")
    except (ValueError, RecursionError):
        return {}
    return {str(shard): str(uid) for shard, uid in found.items() if uid} if isinstance(found, dict) else {}


def _claim(gateway: Gateway, seen: ObservedState, shard: str) -> str:
    """Return the UID of the claim with a shard's log; empty if the claim was not observed."""
    volume, own = gateway.spec.ledger.volume, names(gateway)
    name = volume.existing_claim or own.claim
    if volume.mode is VolumeMode.PER_WORKER and shard.isdecimal():
        name = own.worker_claim(int(shard))
    claim = seen.child("PersistentVolumeClaim", name)
    return str(claim["metadata"].get("uid", "")) if claim else ""

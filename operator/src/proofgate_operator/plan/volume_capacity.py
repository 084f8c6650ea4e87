"""Whether the ledger's volumes have room for the logs of those who write to them.

A worker begins a segment where 40 MiB are free, and holds two (docs/how-to/manage-the-volume.md).
"""

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.quantity import parse_quantity
from proofgate_operator.api.volume import VolumeMode
from proofgate_operator.build.storage import claim_names
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.problems import Problem

_MEBIBYTE = 1 << 20
#: What has to be free for the first segment, and for both that a running worker holds.
_FIRST, _BOTH = 40 * _MEBIBYTE, 72 * _MEBIBYTE


def capacity_problem(gateway: Gateway, seen: ObservedState) -> Problem | None:
    """Return why no worker could begin a log; None if there is room for one on every volume."""
    claim, size = _smallest_volume(gateway, seen)
    if size is None or size >= _FIRST:
        return None
    message = (
        f"PersistentVolumeClaim {claim} has {size} bytes, but a new log needs 40Mi of free space: "
        f"requests are refused with ledger_full. {_remedy(gateway, _BOTH * _writers(gateway))}"
    )
    return Problem("VolumeTooSmall", message)


def capacity_note(gateway: Gateway, seen: ObservedState) -> str | None:
    """Return what is to be said of a volume that not all of its workers have room on; None if they have."""
    claim, size = _smallest_volume(gateway, seen)
    least = _BOTH * _writers(gateway)
    if size is None or size >= least or size < _FIRST:
        return None
    return (
        f"PersistentVolumeClaim {claim} has {size // _MEBIBYTE}Mi, but the segments of its workers alone take"
        f" {least // _MEBIBYTE}Mi: some workers will refuse requests with ledger_full. "
        f"{_remedy(gateway, least)}"
    )


def _remedy(gateway: Gateway, least: int) -> str:
    brought = gateway.spec.ledger.volume.existing_claim is not None
    return (
        f"Increase {'the size of the claim' if brought else 'spec.ledger.volume.size'} to "
        f"{least // _MEBIBYTE}Mi or more"
    )


def _writers(gateway: Gateway) -> int:
    """Return how many workers write to one volume."""
    return gateway.spec.replicas if gateway.spec.ledger.volume.mode is VolumeMode.SHARED else 1


def _smallest_volume(gateway: Gateway, seen: ObservedState) -> tuple[str, int | None]:
    """Return the claim with the least room, and its bytes: those of its volume, or those that are asked for;
    None where that cannot be told."""
    volume = gateway.spec.ledger.volume
    found: list[tuple[int, str]] = []
    names = claim_names(gateway, gateway.spec.replicas)
    for name in names:
        live = seen.child("PersistentVolumeClaim", name) or {}
        capacity = ((live.get("status") or {}).get("capacity") or {}).get("storage")
        asked = (((live.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage")
        wanted = None if volume.existing_claim is not None else volume.size
        size = parse_quantity(capacity or asked or wanted)
        if size is not None:
            found.append((int(size), name))
    if not found:
        return names[0], None
    least, name = min(found)
    return name, least

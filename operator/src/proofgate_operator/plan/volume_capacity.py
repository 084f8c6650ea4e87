"""Checks whether the ledger's volumes have space for the logs of their writers.

A worker starts a segment if 40 MiB are free, and keeps two segments (docs/how-to/manage-the-volume.md).
"""

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.quantity import parse_quantity
from proofgate_operator.api.volume import VolumeMode
from proofgate_operator.build.storage import claim_names
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.problems import Problem

_MEBIBYTE = 1 << 20
#: Bytes that must be free for the first segment, and for both segments of a running worker.
_FIRST, _BOTH = 40 * _MEBIBYTE, 72 * _MEBIBYTE


def capacity_problem(gateway: Gateway, seen: ObservedState) -> Problem | None:
    """Return why no worker could start a log; None if every volume has space for one."""
    claim, size = _smallest_volume(gateway, seen)
    if size is None or size >= _FIRST:
        return None
    message = (
        f"PersistentVolumeClaim {claim} has {size} bytes, but a new log needs 40Mi of free space: "
        f"requests are refused with ledger_full. {_remedy(gateway, _BOTH * _writers(gateway))}"
    )
    return Problem("VolumeTooSmall", message)


def capacity_note(gateway: Gateway, seen: ObservedState) -> str | None:
    """Return a note about a volume without space for all of its workers; None if all have space."""
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
    """Return the number of workers that write to one volume."""
    return gateway.spec.replicas if gateway.spec.ledger.volume.mode is VolumeMode.SHARED else 1


def _smallest_volume(gateway: Gateway, seen: ObservedState) -> tuple[str, int | None]:
    """Return the smallest claim and its size in bytes: the volume's size, or the requested size; None if it
    is unknown."""
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

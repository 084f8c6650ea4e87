"""Whether an object still is what the operator wrote.

A manifest holds if everything in it stands in the live object: fields that the API server or a controller
added are none of its business. A field that the manifest no longer has is told by the digest of the manifest,
which the manifest itself carries. The API server spells quantities its own way (1024Mi becomes 1Gi), so those
are compared by what they are worth.

That is a first opinion. The API server leaves out what is empty, and webhooks rewrite what they are shown, so
the last word is what came of applying the manifest: an object that still looks so is as it can be, and is not
written again.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from proofgate_operator.api.quantity import parse_quantity
from proofgate_operator.build.naming import APPLIED_ANNOTATION, Manifest

#: Fields that are quantities, and those that hold nothing else, by the names of resources.
_QUANTITY_FIELDS = {"sizeLimit", "divisor"}
_RESOURCE_FIELDS = {"requests", "limits"}


def _is_same_quantity(live: Any, wanted: Any) -> bool:
    return bool(live == wanted or (parse_quantity(live) == parse_quantity(wanted) is not None))


def _field_matches(live: dict[str, Any], key: str, value: Any) -> bool:
    if key not in live:
        return False
    have = live[key]
    if key in _QUANTITY_FIELDS:
        return _is_same_quantity(have, value)
    if key in _RESOURCE_FIELDS and isinstance(have, dict) and isinstance(value, dict):
        return all(name in have and _is_same_quantity(have[name], size) for name, size in value.items())
    return contains(have, value)


def contains(live: Any, wanted: Any) -> bool:
    """Return whether `wanted` stands in `live`; lists must agree item by item."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(
            _field_matches(live, key, value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(live, list)
            and len(live) == len(wanted)
            and all(contains(have, want) for have, want in zip(live, wanted, strict=True))
        )
    return bool(live == wanted)


def with_digest(manifest: Manifest) -> Manifest:
    """Return the manifest with the annotation that holds its digest."""
    canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    metadata = manifest["metadata"]
    annotations = {
        **metadata.get("annotations", {}),
        APPLIED_ANNOTATION: hashlib.sha256(canonical.encode()).hexdigest(),
    }
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


@dataclass(frozen=True)
class ApplyResult:
    """What came of applying a manifest: the object's uid, what it said in the fields of the manifest,
    and how often in a row it has been applied since `since`, in seconds since 1970.

    `contested` says who else sets which field, once that is known.
    """

    uid: str
    manifest_digest: str
    fingerprint: str
    since: float = 0.0
    attempts: int = 1
    contested: str | None = None

    @property
    def retry_at(self) -> float:
        """When it may be applied again, in seconds since 1970, although nothing else is wanted than then."""
        return self.since + (0 if self.attempts < _MAX_RAPID_WRITES else _CONTESTED_SECONDS)


#: An object that somebody else changes each time is written so often at once, and then once a minute.
_MAX_RAPID_WRITES = 5
_CONTESTED_SECONDS = 60.0
#: Whoever left it alone for so long does not contest it.
_UNCONTESTED_SECONDS = 150.0


def manifest_digest(manifest: Manifest) -> str:
    """Return the digest that a sealed manifest bears."""
    return str(manifest["metadata"]["annotations"][APPLIED_ANNOTATION])


def is_contested(applied: ApplyResult) -> bool:
    """Return whether the object has been applied so often in a row that somebody else must undo it."""
    return applied.attempts >= _MAX_RAPID_WRITES


def record_apply(before: ApplyResult | None, manifest: Manifest, answer: Manifest, now: float) -> ApplyResult:
    """Return what came of applying `manifest`, given what came of it `before`."""
    uid = answer["metadata"].get("uid", "")
    again = before is not None and (before.uid, before.manifest_digest) == (uid, manifest_digest(manifest))
    lately = before is not None and 0 <= now - before.since < _UNCONTESTED_SECONDS
    times = before.attempts + 1 if before is not None and again and lately else 1
    return ApplyResult(uid, manifest_digest(manifest), fingerprint(answer, manifest), now, times)


def is_up_to_date(live: Manifest, manifest: Manifest, applied: ApplyResult | None) -> bool:
    """Return whether an object is as a manifest says, or as what came of applying just that."""
    if contains(live, manifest):
        return True
    return (
        _is_result_of(applied, live, manifest)
        and applied is not None
        and applied.fingerprint == fingerprint(live, manifest)
    )


def is_reapply_too_soon(live: Manifest, manifest: Manifest, applied: ApplyResult | None, now: float) -> bool:
    """Return whether somebody else changes the object each time, and it has just been written.

    A clock that was set back makes nobody wait for it.
    """
    return (
        applied is not None
        and _is_result_of(applied, live, manifest)
        and applied.since <= now < applied.retry_at
    )


def _is_result_of(applied: ApplyResult | None, live: Manifest, manifest: Manifest) -> bool:
    uid = live["metadata"].get("uid", "")
    return applied is not None and (applied.uid, applied.manifest_digest) == (uid, manifest_digest(manifest))


def fingerprint(live: Manifest, manifest: Manifest) -> str:
    """Return a digest of what an object says in the fields of a manifest; lists count as a whole."""
    canonical = json.dumps(_projected(live, manifest), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _projected(live: Any, wanted: Any) -> Any:
    if isinstance(wanted, dict) and isinstance(live, dict):
        return {key: _projected(live[key], value) for key, value in wanted.items() if key in live}
    return live


def differences(live: Any, wanted: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the fields in which an object is not what a manifest says, as paths; a list is one field."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        for key, value in wanted.items():
            if not _field_matches(live, key, value):
                yield from differences(live.get(key), value, (*place, key))
    else:
        yield place

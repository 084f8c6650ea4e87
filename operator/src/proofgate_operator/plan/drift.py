"""Detects whether an object still matches what the operator wrote.

A manifest matches if the live object contains all of it: fields that the API server or a controller added are
ignored. A field that was removed from the manifest is detected by the manifest's digest in an annotation. The
API server rewrites quantities (1024Mi becomes 1Gi), so they are compared by value.

This comparison can fail wrongly: the API server drops empty fields, and webhooks rewrite objects. Therefore
the result of the last apply counts too: an object that still has that result is up to date, and is not
written again.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from proofgate_operator.api.quantity import parse_quantity
from proofgate_operator.build.naming import APPLIED_ANNOTATION, Manifest

#: Fields that are quantities, and fields that contain only quantities, keyed by resource names.
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
    """Return whether `live` contains `wanted`; lists must match item by item."""
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
    """Return the manifest with the annotation that contains its digest."""
    canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    metadata = manifest["metadata"]
    annotations = {
        **metadata.get("annotations", {}),
        APPLIED_ANNOTATION: hashlib.sha256(canonical.encode()).hexdigest(),
    }
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


@dataclass(frozen=True)
class ApplyResult:
    """The result of applying a manifest: the object's uid, a fingerprint of the manifest's fields in the
    object, and the number of consecutive applies since `since`, in seconds since 1970.

    `contested` says which client overwrites which field; None if none is known.
    """

    uid: str
    manifest_digest: str
    fingerprint: str
    since: float = 0.0
    attempts: int = 1
    contested: str | None = None

    @property
    def retry_at(self) -> float:
        """The time in seconds since 1970 at which an unchanged manifest may be applied again."""
        return self.since + (0 if self.attempts < _MAX_RAPID_WRITES else _CONTESTED_SECONDS)


#: The number of immediate writes to an object that another client overwrites; then it is written once a
#: minute.
_MAX_RAPID_WRITES = 5
_CONTESTED_SECONDS = 60.0
#: An object that stayed unchanged for this long is no longer contested.
_UNCONTESTED_SECONDS = 150.0


def manifest_digest(manifest: Manifest) -> str:
    """Return the digest in a manifest's annotation."""
    return str(manifest["metadata"]["annotations"][APPLIED_ANNOTATION])


def is_contested(applied: ApplyResult) -> bool:
    """Return whether consecutive applies are so many that another client must overwrite the object."""
    return applied.attempts >= _MAX_RAPID_WRITES


def record_apply(before: ApplyResult | None, manifest: Manifest, answer: Manifest, now: float) -> ApplyResult:
    """Return the result of applying `manifest`; `before` is the previous result."""
    uid = answer["metadata"].get("uid", "")
    again = before is not None and (before.uid, before.manifest_digest) == (uid, manifest_digest(manifest))
    lately = before is not None and 0 <= now - before.since < _UNCONTESTED_SECONDS
    times = before.attempts + 1 if before is not None and again and lately else 1
    return ApplyResult(uid, manifest_digest(manifest), fingerprint(answer, manifest), now, times)


def is_up_to_date(live: Manifest, manifest: Manifest, applied: ApplyResult | None) -> bool:
    """Return whether an object matches a manifest, or the result of applying that manifest."""
    if contains(live, manifest):
        return True
    return (
        _is_result_of(applied, live, manifest)
        and applied is not None
        and applied.fingerprint == fingerprint(live, manifest)
    )


def is_reapply_too_soon(live: Manifest, manifest: Manifest, applied: ApplyResult | None, now: float) -> bool:
    """Return whether another client overwrites the object each time, and it was written recently.

    A clock that was set back causes no wait.
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
    """Return a digest of an object's values in the fields of a manifest; lists count as a whole."""
    canonical = json.dumps(_projected(live, manifest), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _projected(live: Any, wanted: Any) -> Any:
    if isinstance(wanted, dict) and isinstance(live, dict):
        return {key: _projected(live[key], value) for key, value in wanted.items() if key in live}
    return live


def differences(live: Any, wanted: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of fields in which an object differs from a manifest; a list counts as one field."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        for key, value in wanted.items():
            if not _field_matches(live, key, value):
                yield from differences(live.get(key), value, (*place, key))
    else:
        yield place

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

from proofgate_operator.api.quantity import quantity
from proofgate_operator.build.naming import APPLIED_ANNOTATION, Manifest

#: Fields that are quantities, and those that hold nothing else, by the names of resources.
_QUANTITIES = {"sizeLimit", "divisor"}
_RESOURCES = {"requests", "limits"}


def _worth_the_same(live: Any, wanted: Any) -> bool:
    return bool(live == wanted or (quantity(live) == quantity(wanted) is not None))


def _field_holds(live: dict[str, Any], key: str, value: Any) -> bool:
    if key not in live:
        return False
    have = live[key]
    if key in _QUANTITIES:
        return _worth_the_same(have, value)
    if key in _RESOURCES and isinstance(have, dict) and isinstance(value, dict):
        return all(name in have and _worth_the_same(have[name], size) for name, size in value.items())
    return holds(have, value)


def holds(live: Any, wanted: Any) -> bool:
    """Return whether `wanted` stands in `live`; lists must agree item by item."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(_field_holds(live, key, value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return (
            isinstance(live, list)
            and len(live) == len(wanted)
            and all(holds(have, want) for have, want in zip(live, wanted, strict=True))
        )
    return bool(live == wanted)


def sealed(manifest: Manifest) -> Manifest:
    """Return the manifest with the annotation that holds its digest."""
    canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    metadata = manifest["metadata"]
    annotations = {
        **metadata.get("annotations", {}),
        APPLIED_ANNOTATION: hashlib.sha256(canonical.encode()).hexdigest(),
    }
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


@dataclass(frozen=True)
class Applied:
    """What came of applying a manifest: the object's uid, what it said in the fields of the manifest,
    and how often in a row it has been applied since `since`, in seconds since 1970.

    `contested` says who else sets which field, once that is known.
    """

    uid: str
    seal: str
    fingerprint: str
    since: float = 0.0
    times: int = 1
    contested: str | None = None

    @property
    def not_before(self) -> float:
        """When it may be applied again, in seconds since 1970, although nothing else is wanted than then."""
        return self.since + (0 if self.times < _PATIENCE else _CONTESTED_SECONDS)


#: An object that somebody else changes each time is written so often at once, and then once a minute.
_PATIENCE = 5
_CONTESTED_SECONDS = 60.0
#: Whoever left it alone for so long does not contest it.
_PEACE_SECONDS = 150.0


def seal(manifest: Manifest) -> str:
    """Return the digest that a sealed manifest bears."""
    return str(manifest["metadata"]["annotations"][APPLIED_ANNOTATION])


def is_contested(applied: Applied) -> bool:
    """Return whether the object has been applied so often in a row that somebody else must undo it."""
    return applied.times >= _PATIENCE


def after(before: Applied | None, manifest: Manifest, answer: Manifest, now: float) -> Applied:
    """Return what came of applying `manifest`, given what came of it `before`."""
    uid = answer["metadata"].get("uid", "")
    again = before is not None and (before.uid, before.seal) == (uid, seal(manifest))
    lately = before is not None and 0 <= now - before.since < _PEACE_SECONDS
    times = before.times + 1 if before is not None and again and lately else 1
    return Applied(uid, seal(manifest), fingerprint(answer, manifest), now, times)


def in_order(live: Manifest, manifest: Manifest, applied: Applied | None) -> bool:
    """Return whether an object is as a manifest says, or as what came of applying just that."""
    if holds(live, manifest):
        return True
    return (
        _is_of(applied, live, manifest)
        and applied is not None
        and applied.fingerprint == fingerprint(live, manifest)
    )


def is_too_soon(live: Manifest, manifest: Manifest, applied: Applied | None, now: float) -> bool:
    """Return whether somebody else changes the object each time, and it has just been written.

    A clock that was set back makes nobody wait for it.
    """
    return (
        applied is not None and _is_of(applied, live, manifest) and applied.since <= now < applied.not_before
    )


def _is_of(applied: Applied | None, live: Manifest, manifest: Manifest) -> bool:
    uid = live["metadata"].get("uid", "")
    return applied is not None and (applied.uid, applied.seal) == (uid, seal(manifest))


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
            if not _field_holds(live, key, value):
                yield from differences(live.get(key), value, (*place, key))
    else:
        yield place

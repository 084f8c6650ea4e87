"""Whether an object still is what the operator wrote.

A manifest holds if everything in it stands in the live object: fields that the API server or a controller
added are none of its business. A field that the manifest no longer has is told by the digest of the manifest,
which the manifest itself carries. The API server spells quantities its own way (1024Mi becomes 1Gi), so those
are compared by what they are worth.
"""

import hashlib
import json
from typing import Any

from proofgate_operator.api.quantity import quantity
from proofgate_operator.build.naming import APPLIED_ANNOTATION, Manifest

#: Fields whose values are quantities, wherever they stand.
_QUANTITIES = {"cpu", "memory", "storage", "ephemeral-storage", "sizeLimit"}


def _field_holds(live: dict[str, Any], key: str, value: Any) -> bool:
    if key not in live:
        return False
    have = live[key]
    if key in _QUANTITIES and isinstance(value, str):
        return have == value or (quantity(have) == quantity(value) is not None)
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

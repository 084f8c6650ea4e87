"""Whether an object still is what the operator wrote.

A manifest holds if everything in it stands in the live object: fields that the API server or a controller
added are none of its business. A field that the manifest no longer has is told by the digest of the manifest,
which the manifest itself carries. Two spellings of one quantity count as drift; writing them again changes
nothing.
"""

import hashlib
import json
from typing import Any

from proofgate_operator.build.naming import APPLIED_ANNOTATION, Manifest


def holds(live: Any, wanted: Any) -> bool:
    """Return whether `wanted` stands in `live`; lists must agree item by item."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(
            key in live and holds(live[key], value) for key, value in wanted.items()
        )
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

"""Objects as the store keeps them: compressed JSON, without what nothing here reads."""

import json
import zlib

from proofgate_operator.build.naming import Manifest


def pack(found: Manifest) -> bytes:
    """Return an object as it is kept."""
    metadata = {name: value for name, value in found["metadata"].items() if name != "managedFields"}
    text = json.dumps({**found, "metadata": metadata}, separators=(",", ":"))
    return zlib.compress(text.encode(), 1)


def unpack(kept: bytes) -> Manifest:
    """Return the object that is kept so; what it is made of is the caller's own."""
    found: Manifest = json.loads(zlib.decompress(kept))
    return found

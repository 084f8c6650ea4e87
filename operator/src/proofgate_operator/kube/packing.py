"""Compressed JSON representation of objects in the store, without the fields that the operator never
reads."""

import json
import zlib

from proofgate_operator.build.naming import Manifest


def pack(found: Manifest) -> bytes:
    """Return the stored representation of an object."""
    metadata = {name: value for name, value in found["metadata"].items() if name != "managedFields"}
    text = json.dumps({**found, "metadata": metadata}, separators=(",", ":"))
    return zlib.compress(text.encode(), 1)


def unpack(kept: bytes) -> Manifest:
    """Return the object of a stored representation; the caller may modify the result."""
    found: Manifest = json.loads(zlib.decompress(kept))
    return found

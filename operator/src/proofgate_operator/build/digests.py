"""Digests that give nothing away of what they are made from."""

import hashlib
import hmac
from collections.abc import Sequence


def keyed_digest(secret: bytes, parts: Sequence[str]) -> str:
    """Return a digest of `parts` that tells who lacks `secret` nothing, not even about a weak key among
    them."""
    mac = hmac.new(secret, digestmod=hashlib.sha256)
    for part in parts:
        data = part.encode()
        mac.update(len(data).to_bytes(8, "big") + data)
    return mac.hexdigest()

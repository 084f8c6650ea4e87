"""The token by which an auditor reads a worker's folder."""

from __future__ import annotations

import hashlib
import hmac

_PURPOSE = b"proofgate ledger reading"


def auditor_token(admin_token: str) -> str:
    """The token that belongs to an admin token: HMAC-SHA-256 under that, 256 bits in hexadecimal.

    It opens the reading of evidence alone, and tells who has it nothing of the admin token.
    """
    return hmac.new(admin_token.encode(), _PURPOSE, hashlib.sha256).hexdigest()

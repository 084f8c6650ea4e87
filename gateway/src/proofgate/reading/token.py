"""The token with which an auditor reads a worker's folder."""

from __future__ import annotations

import hashlib
import hmac

_PURPOSE = b"proofgate ledger reading"


def auditor_token(admin_token: str) -> str:
    """Derives the auditor token from an admin token: HMAC-SHA-256 with the admin token as key, 256 bits in
    hexadecimal.

    The auditor token only allows reading evidence, and reveals nothing about the admin token.
    """
    return hmac.new(admin_token.encode(), _PURPOSE, hashlib.sha256).hexdigest()

"""Links that sign a reader in once, within ten minutes.

A folder has one file for each link, named by the SHA-256 of its token, so a user who can read the folder
cannot sign in with the link. Use of a link removes its file, which succeeds only once.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from pathlib import Path

from proofgate.index.readers import Reader

#: Seconds for which a link can be used.
LINK_SECONDS = 600
#: Seconds for which a link keeps a reader signed in.
SESSION_SECONDS = 8 * 3600
_MICROSECONDS = 1_000_000


class SignInLinks:
    """The links in a folder. Safe for concurrent use by threads and processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def make(self, name: str, tenant: str | None = None) -> str:
        """Creates a link for a reader of one tenant, or, with None, of all tenants. Returns its token. Raises
        OSError."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        now = time.time_ns() // 1000
        self._remove_expired(now)
        token = secrets.token_urlsafe(32)
        entry = {"name": name, "tenant": tenant, "until": now + LINK_SECONDS * _MICROSECONDS}
        path = self._folder / _digest(token)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(entry, file)
        return token

    def use(self, token: str) -> Reader | None:
        """Uses a link. Returns the reader whom the token signs in, with the end of the session.

        None for a used, expired or unknown link. Raises OSError.
        """
        path = self._folder / _digest(token)
        try:
            entry = _read(path)
            path.unlink()
        except FileNotFoundError:
            return None
        now = time.time_ns() // 1000
        if entry is None or not _is_valid(entry[1], now):
            return None
        reader, _ = entry
        return Reader(reader.name, reader.tenant, now + SESSION_SECONDS * _MICROSECONDS)

    def _remove_expired(self, now: int) -> None:
        for path in self._folder.iterdir():
            try:
                entry = _read(path)
                if entry is None or not _is_valid(entry[1], now):
                    path.unlink()
            except FileNotFoundError:
                # The link was used meanwhile.
                continue


def _is_valid(until: int, now: int) -> bool:
    # If the clock is set back, a link does not become valid for longer.
    return now < until <= now + LINK_SECONDS * _MICROSECONDS


def _read(path: Path) -> tuple[Reader, int] | None:
    try:
        entry = json.loads(path.read_bytes())
        name, tenant, until = entry["name"], entry["tenant"], entry["until"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(name, str) or not isinstance(tenant, str | None) or not isinstance(until, int):
        return None
    return Reader(f"link:{name}", tenant), until


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()

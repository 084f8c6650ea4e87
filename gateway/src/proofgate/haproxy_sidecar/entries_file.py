"""A file of keys and values, which HAProxy stores in another format."""

from __future__ import annotations

import re
from pathlib import Path

from proofgate.haproxy_sidecar.runtime_api import RuntimeApi
from proofgate.haproxy_sidecar.target import CHECK_SECONDS, RefusedError

_LINE = re.compile(r"([A-Za-z0-9._-]{1,253})[ \t]+([A-Za-z0-9._-]{1,253})")


class EntriesFile:
    """The common base of targets that are such files: the text, and the number of entries in HAProxy."""

    check_seconds = CHECK_SECONDS

    def __init__(self, path: Path, api: RuntimeApi) -> None:
        self._path = path
        self._api = api
        self._entries = 0

    @property
    def name(self) -> str:
        return self._path.name

    def read(self) -> str | None:
        try:
            return self._path.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not ASCII"
            raise RefusedError(f"{self._path} cannot be read: {reason}") from None

    def errors(self) -> list[str]:
        return []

    def gauges(self) -> dict[str, float]:
        return {"entries": self._entries}


def parse_entries(content: str) -> dict[str, str]:
    """Parses the entries of a file: lines of a key and a value, with empty lines and comments (`#`) between
    them.

    Raises RefusedError with the number of any other line.
    """
    entries: dict[str, str] = {}
    for number, line in enumerate(content.split("\n"), start=1):
        text = line.strip(" \t\r")
        if not text or text.startswith("#"):
            continue
        found = _LINE.fullmatch(text)
        if not found:
            raise RefusedError(f"line {number} is not a key and a value")
        if entries.setdefault(found[1], found[2]) != found[2]:
            raise RefusedError(f"the key in line {number} already has another value")
    return entries

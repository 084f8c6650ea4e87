"""The statements of key succession of a ledger: which keys follow each other, and who else has to know it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from proofgate import _core
from proofgate.regular_file import read_regular

#: Where a ledger, and a mirror of it, have them.
STATEMENTS = "key-successions"
_FILE = re.compile(r"[0-9a-f]{32}\.note")
#: Of the files that are looked at, and of the bytes of one: anybody can place some on the volume.
_MOST_FILES = 1024
_MOST_BYTES = 8192


def of_the_line(ledger: Path, ledger_key: str) -> list[tuple[str, str]]:
    """The files in a ledger's `key-successions`, and their notes, that lead from a key to others.

    Both keys have signed each; what else stands there is left out. Raises OSError.
    """
    contents: dict[str, bytes] = {}
    try:
        files = sorted(path for path in (ledger / STATEMENTS).iterdir() if _FILE.fullmatch(path.name))
    except FileNotFoundError:
        return []
    for path in files[:_MOST_FILES]:
        content = read_regular(path, _MOST_BYTES)
        if content is not None:
            contents[path.name] = content
    return among(contents, ledger_key)


def among(contents: Mapping[str, bytes], ledger_key: str) -> list[tuple[str, str]]:
    """As `of_the_line`, of files by their names."""
    notes = {}
    for name, content in contents.items():
        stem = name.removesuffix(".note")
        if len(content) <= _MOST_BYTES and stem == hashlib.sha256(content).hexdigest()[:32]:
            note = content.decode("utf-8", "replace")
            if _is_signed(note):
                notes[name] = note
    line = set(_line("\n".join([ledger_key, *notes.values()])))
    return [(name, note) for name, note in notes.items() if set(_named(note)) <= line]


def line_of(ledger: Path, ledger_key: str) -> list[str]:
    """The vkeys that a key of a ledger leads to, itself among them. Raises OSError."""
    return _line("\n".join([ledger_key, *(note for _, note in of_the_line(ledger, ledger_key))]))


def _named(note: str) -> list[str]:
    """The two vkeys that it names."""
    return [line.split(" ", 1)[1] for line in note.split("\n")[1:3] if " " in line]


def _is_signed(note: str) -> bool:
    named = _named(note)
    return len(named) == 2 and len(_line(f"{named[0]}\n{note}")) == 2


def _line(text: str) -> list[str]:
    try:
        return [vkey for vkey, _ in _core.key_line(text)]
    except ValueError:
        # It forks: then no statement leads anywhere.
        return []

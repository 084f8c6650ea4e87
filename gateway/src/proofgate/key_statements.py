"""The statements of succession of a ledger's keys."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from proofgate import _core
from proofgate.regular_file import read_regular

#: Folder of the statements in a ledger and in a mirror.
STATEMENTS = "key-successions"
_FILE = re.compile(r"[0-9a-f]{32}\.note")
#: Maximum number of files that are read, and maximum bytes of a file: anybody can write files to the volume.
_MAX_FILES = 1024
_MAX_BYTES = 8192


def chain_statements(ledger: Path, ledger_key: str) -> list[tuple[str, str]]:
    """Returns the files, with their notes, in a ledger's `key-successions` that lead from a key to others.

    Each note is signed by both its keys; other files are left out. Raises OSError.
    """
    contents: dict[str, bytes] = {}
    try:
        files = sorted(path for path in (ledger / STATEMENTS).iterdir() if _FILE.fullmatch(path.name))
    except FileNotFoundError:
        return []
    for path in files[:_MAX_FILES]:
        content = read_regular(path, _MAX_BYTES)
        if content is not None:
            contents[path.name] = content
    return chain_statements_from_files(contents, ledger_key)


def chain_statements_from_files(contents: Mapping[str, bytes], ledger_key: str) -> list[tuple[str, str]]:
    """Returns the same as `chain_statements`, for file contents by name."""
    notes = {}
    for name, content in contents.items():
        stem = name.removesuffix(".note")
        if len(content) <= _MAX_BYTES and stem == hashlib.sha256(content).hexdigest()[:32]:
            note = content.decode("utf-8", "replace")
            if _is_signed(note):
                notes[name] = note
    line = set(_chain_keys("\n".join([ledger_key, *notes.values()])))
    return [(name, note) for name, note in notes.items() if set(_note_keys(note)) <= line]


def key_chain(ledger: Path, ledger_key: str) -> list[str]:
    """Returns the vkeys in the chain of a ledger's key, including the key itself. Raises OSError."""
    return _chain_keys("\n".join([ledger_key, *(note for _, note in chain_statements(ledger, ledger_key))]))


def _note_keys(note: str) -> list[str]:
    """The two vkeys in a note."""
    return [line.split(" ", 1)[1] for line in note.split("\n")[1:3] if " " in line]


def _is_signed(note: str) -> bool:
    named = _note_keys(note)
    return len(named) == 2 and len(_chain_keys(f"{named[0]}\n{note}")) == 2


def _chain_keys(text: str) -> list[str]:
    try:
        return [vkey for vkey, _ in _core.key_line(text)]
    except ValueError:
        # The chain forks, so no statement is valid.
        return []

"""Copies of files that the logs of a ledger share: configurations that records name, and statements of key
succession."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from proofgate.archive import FOLDER as CONFIGURATIONS
from proofgate.key_statements import STATEMENTS, chain_statements_from_files
from proofgate.replica.log_copy import LedgerSource

#: Maximum bytes of an archived configuration.
_MAX_CONFIGURATION_BYTES = 64 << 20
_BLOCK = 1 << 20


class SharedFiles:
    """The copies of shared files in `ledger`, a folder with the layout of a ledger. For use by one thread."""

    def __init__(self, ledger: Path, require_room: Callable[[int], None]) -> None:
        """`require_room` is called with the number of bytes before they are written. An exception prevents
        the write."""
        self._ledger, self._require_room = ledger, require_room
        self._wanted: set[str] = set()

    def copy_statements(self, statements: Mapping[str, bytes], ledger_key: str) -> None:
        """Writes the statements, by file name, that lead from a key to others."""
        for name, text in chain_statements_from_files(statements, ledger_key):
            self._write_file(self._ledger / STATEMENTS / name, text.encode())

    def request_configurations(self, digests: set[str]) -> None:
        """Requests the configurations with these digests, which copied records name."""
        self._wanted |= digests

    def copy_configurations(self, source: LedgerSource) -> None:
        """Copies the requested configurations. Those that this worker does not have wait. Raises OSError."""
        for digest in sorted(self._wanted):
            target = self._ledger / CONFIGURATIONS / f"{digest}.json"
            if target.exists():
                self._wanted.discard(digest)
                continue
            content = bytearray()
            try:
                for offset in range(0, _MAX_CONFIGURATION_BYTES, _BLOCK):
                    length, block = source.read(f"{CONFIGURATIONS}/{digest}.json", offset, _BLOCK)
                    content += block
                    if len(content) >= length:
                        break
            except FileNotFoundError:
                continue
            if hashlib.sha256(content).hexdigest() == digest:
                self._write_file(target, bytes(content))
                self._wanted.discard(digest)

    def _write_file(self, target: Path, content: bytes) -> None:
        if target.exists():
            return
        self._require_room(len(content))
        target.parent.mkdir(mode=0o700, exist_ok=True)
        draft = target.with_name(f"{target.name}.draft")
        draft.write_bytes(content)
        draft.replace(target)

"""Stores the newest checkpoint of each log, and detects a ledger that is not consistent with it."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proofgate_schema.counts import format_count

from proofgate.evidence import EvidenceError, read_verifying_key
from proofgate.receipts import verified_receipt
from proofgate.receipts.fetch import ReceiptSource, fetch
from proofgate.receipts.verified_receipt import Checkpoint, ContradictedError, Receipt, VerifiedReceipt

# Maximum number of requests for one receipt. Its records are in one or two logs, and each may grow during a
# request about the other.
_MAX_FETCHES = 8


class Witness:
    """Checks receipts of one ledger against its earlier checkpoints.

    `store` is a file of signed notes, one for each log, which `proofgate ledger fsck --against` also accepts.
    Threads and processes may share the file, which is locked during use. A client that loses it starts again,
    and an earlier rollback is not detected.
    """

    def __init__(self, vkey: str, store: Path) -> None:
        """`vkey` is the ledger's verifying key, as text or as a file with it. Raises EvidenceError."""
        self._vkey = read_verifying_key(vkey)
        self._store = store
        self._lock = threading.Lock()

    @property
    def vkey(self) -> str:
        """The ledger's verifying key."""
        return self._vkey

    def newest_checkpoints(self) -> dict[str, Checkpoint]:
        """The newest checkpoint of each log, by its origin. Raises EvidenceError."""
        with self._exclusive_access():
            return self._load()

    def verify(
        self, receipt: str, request: bytes | None = None, response: bytes | None = None
    ) -> VerifiedReceipt:
        """Checks a receipt that was already fetched, with the SHA-256 of bodies, against itself and the held
        checkpoints.

        A receipt that is older than a held checkpoint proves nothing about it. A newer checkpoint is stored
        if the receipt proves that it continues the held one. Raises ContradictedError.
        """
        parsed = Receipt.parse(receipt)
        with self._exclusive_access():
            held = self._load()
            verified = verified_receipt.verify(parsed, self._vkey, request, response)
            self._merge(held, verified)
            self._save(held)
            return verified

    def fetch(
        self,
        source: ReceiptSource,
        request_id: str,
        request: bytes | None = None,
        response: bytes | None = None,
        timeout_seconds: float = 10,
    ) -> VerifiedReceipt:
        """Fetches and checks a receipt, with a proof from the gateway that each log continues the held
        checkpoint.

        Raises ContradictedError if a log was rolled back, forked or rewritten, or if bodies differ;
        EvidenceError if there is no receipt.
        """
        give_up = time.monotonic() + timeout_seconds
        with self._exclusive_access():
            held = self._load()
            asked = next(reversed(held.values()), None)
            behind = None
            for _ in range(_MAX_FETCHES):
                left = max(give_up - time.monotonic(), 0)
                receipt, _ = fetch(source, request_id, left, asked)
                verified = verified_receipt.verify(receipt, self._vkey, request, response)
                unshown = self._merge(held, verified)
                if not unshown:
                    self._save(held)
                    return verified
                origin = unshown[0]
                before, asked = asked, held[origin]
                if asked == before and verified.newest_checkpoints[origin].size < asked.size:
                    behind = origin
                    if time.monotonic() >= give_up:
                        break
                    # Another worker may see changes of the volume with a delay.
                    time.sleep(min(1.0, max(give_up - time.monotonic(), 0)))
            self._save(held)
        if behind is not None:
            now = verified.newest_checkpoints[behind].size
            raise ContradictedError(
                f"{behind} was rolled back: its checkpoint covered "
                f"{format_count(held[behind].size, 'record')} before, but the gateway shows a "
                f"checkpoint of {now} without a proof that both are consistent"
            )
        raise EvidenceError(
            f"the gateway does not prove that {unshown[0]} is consistent with the earlier signed checkpoint"
        )

    def _merge(self, held: dict[str, Checkpoint], verified: VerifiedReceipt) -> list[str]:
        """Compares a receipt with the held checkpoints, and stores newer ones. Returns the logs for which the
        receipt has no consistency proof.
        """
        unshown = []
        for origin, newest in verified.newest_checkpoints.items():
            before = held.get(origin)
            if before is not None:
                ours = [checkpoint for checkpoint in verified.checkpoints if checkpoint.origin == origin]
                same = [checkpoint for checkpoint in ours if checkpoint.size == before.size]
                older, newer = sorted((before, newest), key=lambda checkpoint: checkpoint.size)
                if same:
                    verified_receipt.require_link(verified.receipt, before, same[0], self._vkey)
                elif verified_receipt.has_link(verified.receipt, older, newer):
                    verified_receipt.require_link(verified.receipt, older, newer, self._vkey)
                else:
                    unshown.append(origin)
                    continue
                if newest.size < before.size:
                    continue
            # The last checkpoint is used first in requests.
            held.pop(origin, None)
            held[origin] = newest
        return unshown

    @contextmanager
    def _exclusive_access(self) -> Iterator[None]:
        with self._lock:
            lock = self._store.with_name(f"{self._store.name}.lock")
            try:
                file = lock.open("a")
            except OSError as error:
                raise EvidenceError(f"{lock} cannot be opened: {error.strerror}") from None
            with file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield

    def _load(self) -> dict[str, Checkpoint]:
        try:
            text = self._store.read_text()
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise EvidenceError(f"{self._store} cannot be read: {error}") from None
        notes = [verified_receipt.read_checkpoint(note, self._vkey) for note in _notes(text)]
        return {checkpoint.origin: checkpoint for checkpoint in notes}

    def _save(self, held: dict[str, Checkpoint]) -> None:
        fresh = self._store.with_name(f"{self._store.name}.new")
        try:
            with fresh.open("w") as file:
                file.write("".join(checkpoint.note for checkpoint in held.values()))
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._store)
        except OSError as error:
            raise EvidenceError(f"{self._store} cannot be written: {error.strerror}") from None


def _notes(text: str) -> list[str]:
    """Splits a text into notes. A note is a text, an empty line, and lines that start with an em dash; the
    next note follows.
    """
    notes, note, signed = [], "", False
    for line in text.splitlines(keepends=True):
        if signed and not line.startswith("\u2014 "):
            notes.append(note)
            note, signed = "", False
        signed = signed or line.startswith("\u2014 ")
        note += line
    return [*notes, note] if note else notes

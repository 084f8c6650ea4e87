"""The files of an ended log that are mirrored: exactly the bytes that were read to verify the log."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proofgate import _core
from proofgate.mirror.aggregate import EndedLog
from proofgate.mirror.target import MirrorObject

SEGMENT_NAME = re.compile(r"[0-9]{20}\.(seg|next)")
#: The worst verdict of a log that is still mirrored: all data is valid, but the end may be missing.
_EXIT_INCOMPLETE = 10
_LOG_FILE = re.compile(r"[0-9]{20}\.(seg|next)|checkpoint|[0-9A-HJKMNP-TV-Z]{26}\.checkpoint")
_REMOVED_LOG_FILE = re.compile(
    r"tombstone|[0-9]{20}\.(record|tlog-proof|consistency)|checkpoint|[0-9A-HJKMNP-TV-Z]{26}\.checkpoint"
)


class UnverifiedError(Exception):
    """A log differs from what the auditor accepted. The message says why."""


def verified_files(
    ledger: Path, ended: EndedLog, ledger_key: str, keeping_key: str | None
) -> list[tuple[MirrorObject, Path | None]]:
    """Returns the objects to mirror of a log, or of its remaining files after its removal; each segment with
    its path.

    The log's own checkpoint comes last, so its presence in the mirror means that the log is complete. Raises
    UnverifiedError, and the core's LedgerError if the log cannot be read.
    """
    folder = ledger / ended.log_path
    code, report, read = _core.fsck_pinned(str(folder), ended.checkpoint, ledger_key, keeping_key)
    told = json.loads(report)
    if code > _EXIT_INCOMPLETE:
        raise UnverifiedError(_first_message(told))
    removed = told["incarnations"][0].get("removed")
    if removed is not None and not removed["verified"]:
        # Any writer can create a tombstone. Without the retention key, its origin cannot be verified.
        raise UnverifiedError("it has a tombstone, but no --keeping-key is given")
    top, wanted = ("removed", _REMOVED_LOG_FILE) if removed else ("ledger", _LOG_FILE)
    found = []
    for name, length, digest in sorted(
        ((Path(path).name, length, digest) for path, length, digest in read),
        key=lambda file: (file[0] == "checkpoint", file[0]),
    ):
        if wanted.fullmatch(name):
            piece = MirrorObject(f"{top}/{ended.log_path}/{name}", length, digest, folder / name)
            found.append((piece, folder / name if SEGMENT_NAME.fullmatch(name) else None))
    return found


def segment_bytes(ledger: Path, ended: EndedLog) -> int:
    """Returns the total bytes of a log's segments."""
    try:
        with os.scandir(ledger / ended.log_path) as entries:
            return sum(entry.stat().st_size for entry in entries if SEGMENT_NAME.fullmatch(entry.name))
    except OSError:
        return 0


def _first_message(report: dict[str, Any]) -> str:
    logs: Iterator[dict[str, Any]] = (found for one in report["incarnations"] for found in one["findings"])
    worst = sorted(
        [*logs, *report.get("findings", [])],
        key=lambda found: ["ok", "incomplete", "diverged", "invalid"].index(found.get("verdict", "ok")),
    )
    return str(worst[-1]["message"]) if worst else "it does not verify"

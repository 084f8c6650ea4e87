"""Which files of a log that has ended are mirrored: those that were read to verify it, just their bytes."""

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
    """What is there is not what the auditor accepted. The message says why."""


def verified_files(
    ledger: Path, ended: EndedLog, ledger_key: str, keeping_key: str | None
) -> list[tuple[MirrorObject, Path | None]]:
    """What is to be mirrored of a log or, after its removal, of what stays of it; with each segment its path.

    The log's own checkpoint comes last: where it is, all of the log is. Raises UnverifiedError, and the
    core's LedgerError where it cannot be read.
    """
    folder = ledger / ended.log_path
    code, report, read = _core.fsck_pinned(str(folder), ended.checkpoint, ledger_key, keeping_key)
    told = json.loads(report)
    if code > _EXIT_INCOMPLETE:
        raise UnverifiedError(_first_message(told))
    removed = told["incarnations"][0].get("removed")
    if removed is not None and not removed["verified"]:
        # Anybody can put one there: without the retention key nobody knows whose it is.
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
    """Bytes of the segments of a log."""
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

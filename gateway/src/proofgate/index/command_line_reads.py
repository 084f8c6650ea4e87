"""Reads with commands on a machine that has the files. If the location of the access log is known, they add a
line to it, like reads over the auditor's port.

Users with access to the files can also read them with other programs. Only the commands write a line, before
they show anything.
"""

from __future__ import annotations

import argparse
import errno
import os
import pwd
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from proofgate.evidence import EvidenceError
from proofgate.index.access_log import (
    MAX_LOG_BYTES,
    AccessLog,
    AccessLogError,
    AccessLogFullError,
    LogFile,
    chown_to_directory_owner,
    encode_entry,
    exclusive_writer,
    find_log_files,
)
from proofgate.index.access_log_quota import BY_HAND, line_owner, pool_bytes
from proofgate.index.schema import format_time

#: File in an index that contains the location of the auditor's access log.
LOCATION_FILE = "access-log"
#: Environment variable with that location, for commands without an index.
STATE_VARIABLE = "PROOFGATE_ACCESS_LOG"
_MAX_VALUE_LENGTH = 512


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to a command that shows what was recorded."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--access-log",
        type=Path,
        metavar="STATE",
        default=os.environ.get(STATE_VARIABLE) or None,
        help=f"record this read in the --state of this auditor (default: ${STATE_VARIABLE}, or the auditor "
        "of --index)",
    )
    where.add_argument("--unrecorded", action="store_true", help="allow the read if it cannot be recorded")


def write_access_log_location(index: Path, state: Path) -> None:
    """Writes the location of the auditor's access log into an index. Raises OSError."""
    index.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = index / f".{LOCATION_FILE}.draft"
    draft.write_text(f"{state.resolve()}\n", encoding="utf-8")
    draft.replace(index / LOCATION_FILE)


def record_read(
    options: argparse.Namespace, command: str, asked: dict[str, Any], rows: int | None = None
) -> None:
    """Records a read in the access log, if its location is known. Raises EvidenceError if the line cannot be
    written; nothing may be shown then."""
    state = options.access_log or _location_from_index(getattr(options, "index", None))
    if state is None or not state.is_dir():
        if options.access_log is not None and not options.unrecorded:
            raise EvidenceError(
                f"{state} is not an auditor's state: the read cannot be recorded, so nothing is shown"
            )
        return
    now = time.time_ns() // 1000
    entry: dict[str, Any] = {
        "time": format_time(now),
        "by_hand": command,
        **_current_user(),
        "asked": {name: str(value)[:_MAX_VALUE_LENGTH] for name, value in asked.items() if value is not None},
    }
    if rows is not None:
        entry["rows"] = rows
    try:
        append_entry(state, entry, now)
    except OSError as error:
        if options.unrecorded:
            print(f"proofgate: not recorded in {state}: {error.strerror}", file=sys.stderr)
            return
        raise EvidenceError(
            f"the read cannot be recorded in {state}, so nothing is shown: {error.strerror} "
            "(--unrecorded allows it) [access_log_unavailable]"
        ) from None


def _location_from_index(index: Path | None) -> Path | None:
    if index is None:
        return None
    try:
        text = (index / LOCATION_FILE).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return Path(text) if text else None


def _current_user() -> dict[str, str]:
    """The user and the host from the system; with `sudo`, also the original user."""
    number = os.getuid()
    try:
        user = pwd.getpwuid(number).pw_name
    except KeyError:
        user = str(number)
    before = os.environ.get("SUDO_USER")
    return {
        "user": user,
        **({"sudo_user": before[:_MAX_VALUE_LENGTH]} if before else {}),
        "host": socket.gethostname(),
    }


def append_entry(
    directory: Path, entry: dict[str, Any], now_us: int, most_bytes: int = MAX_LOG_BYTES
) -> None:
    """Adds a line durably to the newest log in a directory; starts a log if there is none. The directory may
    belong to a running auditor, which then adds the line to its tree. Raises OSError."""
    line = encode_entry(entry)
    if not find_log_files(directory):
        AccessLog(directory, now_us).close()
    with exclusive_writer(directory):
        logs = find_log_files(directory)
        files = [file for log in logs.values() for file in log]
        used = sum(file.path.stat().st_size for file in files)
        if used + len(line) > most_bytes:
            raise AccessLogFullError(f"{used} of at most {most_bytes} bytes are used: move older files away")
        _require_space(files, used, len(line), most_bytes)
        newest = logs[max(logs)][-1].path
        opened = os.open(newest, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            chown_to_directory_owner(opened, directory)
            size = os.fstat(opened).st_size
            cut = b"\n" if size and os.pread(opened, 1, size - 1) != b"\n" else b""
            if os.write(opened, cut + line) != len(cut) + len(line):
                raise OSError(errno.ENOSPC, "the line was written only in part")
            os.fsync(opened)
        finally:
            os.close(opened)


def _require_space(files: list[LogFile], used: int, length: int, most_bytes: int) -> None:
    """Raises AccessLogFullError if the part for reads with commands is full, which all users share."""
    pool = pool_bytes(BY_HAND, most_bytes)
    if used + length <= pool:
        return
    own = 0
    for file in files:
        # The auditor reports files that do not belong to a log.
        with suppress(AccessLogError), file.read() as (_, lines):
            own += sum(len(line) for line in lines if line_owner(line).pool == BY_HAND)
    if own + length > pool:
        raise AccessLogFullError(
            f"commands have used {own} of their {pool} bytes of the access log: move older files away"
        )

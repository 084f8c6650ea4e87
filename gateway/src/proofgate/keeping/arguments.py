"""Shared arguments of the retention commands: times, durations, keys, the state."""

from __future__ import annotations

import argparse
import datetime
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from proofgate import _core, aggregate_log, evidence, times
from proofgate.auditor_port import AuditorPort
from proofgate.keeping.anchors import CACHE_FILE, Anchors, AnchorsError

_DAYS = re.compile(r"([0-9]{1,6})d")
_MICROSECONDS = 1_000_000


#: Environment variable with the person or role that is responsible, if `--author` is not given.
AUTHOR_VARIABLE = "PROOFGATE_AUTHOR"


class Justification(NamedTuple):
    """The responsible person or role for a statement, its reason, and its ticket; each one line."""

    author: str
    reason: str
    ticket: str | None = None


class UsageError(Exception):
    """An argument cannot be used. The message says why."""


def days(text: str) -> int:
    """Parses a number of days, such as `180d`."""
    found = _DAYS.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError("expected days, such as 180d")
    return int(found[1])


def tenant_days(text: str) -> tuple[str, int]:
    """Parses a tenant's number of days, such as `acme=730d`."""
    tenant, separator, minimum = text.rpartition("=")
    if not separator or not tenant:
        raise argparse.ArgumentTypeError("expected a tenant and days, such as acme=730d")
    return tenant, days(minimum)


def parse_timestamp(text: str) -> int:
    """Parses an ISO 8601 day or time to Unix microseconds; a day to its first microsecond."""
    return _parse_time(times.parse_start, text)


def parse_inclusive_end(text: str) -> int:
    """Parses an inclusive end like `parse_timestamp`; a day to its last microsecond."""
    return _parse_time(times.parse_inclusive_end, text)


def parse_exclusive_end(text: str) -> int:
    """Parses an exclusive end like `parse_timestamp`; a day to the first microsecond of the next day."""
    return _parse_time(times.parse_exclusive_end, text)


def _parse_time(as_microseconds: Callable[[str], int], text: str) -> int:
    try:
        return as_microseconds(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a day or a time since 1970, such as {times.EXAMPLES}"
        ) from None


def now() -> int:
    """Returns the current time in Unix microseconds."""
    return time.time_ns() // 1000


def format_time(microseconds: int) -> str:
    """Formats a time in Unix microseconds."""
    try:
        read = datetime.datetime.fromtimestamp(microseconds // _MICROSECONDS, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return f"{microseconds} µs"
    return read.strftime("%Y-%m-%dT%H:%M:%SZ")


def add_state(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for the retention job's state directory."""
    parser.add_argument(
        "--state",
        type=Path,
        required=True,
        metavar="DIR",
        help="the retention job's own directory, with the holds, not on the ledger's volume",
    )


def add_ledger(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the ledger, its key, the state and the retention key."""
    parser.add_argument("--ledger", type=Path, required=True, metavar="DIR", help="the ledger's directory")
    parser.add_argument(
        "--ledger-key",
        required=True,
        metavar="VKEY",
        help="the ledger's verifying key, or a file that contains it",
    )
    add_state(parser)
    parser.add_argument(
        "--signing-key",
        type=Path,
        required=True,
        metavar="FILE",
        help="the retention job's signing key, which signs each removal",
    )
    add_auditor(parser)


def add_author(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for the responsible person or role."""
    parser.add_argument(
        "--author",
        metavar="NAME",
        help=f"the person or role responsible, on one line; it is signed (default: ${AUTHOR_VARIABLE})",
    )


def add_ticket(parser: argparse.ArgumentParser, *others: str) -> None:
    """Adds the argument for the ticket. `others` are further names of the option."""
    parser.add_argument(
        "--ticket",
        *others,
        dest="ticket",
        metavar="TEXT",
        help="the case or ticket, on one line; it is signed",
    )


def add_auditor(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the auditor's log, which must have a statement before anything is destroyed."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--auditor",
        metavar="URL",
        help="the auditor's port; nothing is destroyed, and no hold counts as released, until the "
        "auditor's log contains the statement",
    )
    where.add_argument(
        "--auditor-state",
        type=Path,
        metavar="DIR",
        help="instead of --auditor: the auditor's --state, or a copy of it",
    )
    parser.add_argument(
        "--auditor-key", metavar="VKEY", help="the auditor's verifying key, or a file that contains it"
    )


def anchors(options: argparse.Namespace) -> Anchors | None:
    """Returns the reader of statements in the auditor's log; None if nothing waits for the log. Raises
    UsageError."""
    if options.auditor_state is None and options.auditor is None and options.auditor_key is None:
        return None
    if (options.auditor_state is None and options.auditor is None) or options.auditor_key is None:
        raise UsageError("give --auditor-key together with --auditor or --auditor-state")
    key = evidence.read_verifying_key(options.auditor_key)
    if options.auditor_state is not None:
        return Anchors(aggregate_log.StateFiles(options.auditor_state), key)
    try:
        return Anchors(AuditorPort(options.auditor), key, options.state / CACHE_FILE)
    except ValueError as error:
        raise UsageError(str(error)) from None


def anchored_statements(options: argparse.Namespace) -> set[str] | None:
    """Returns the SHA-256 digests of the statements in the auditor's log; None if the command was given no
    auditor (`--auditor`, `--auditor-state`). Raises UsageError."""
    found = anchors(options)
    try:
        return None if found is None else found.read()
    except AnchorsError as error:
        raise UsageError(f"{error}: nothing was done") from None


def author(options: argparse.Namespace, *, signs: bool) -> str:
    """Returns the responsible person or role, which is required only if something is signed. Raises
    UsageError."""
    named: str = options.author or os.environ.get(AUTHOR_VARIABLE, "")
    if not named and signs:
        raise UsageError(
            f"name the person or role responsible with --author or ${AUTHOR_VARIABLE}: the name is signed"
        )
    return named


def add_tenant_minimum(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for minimum retentions of tenants."""
    parser.add_argument(
        "--tenant-minimum",
        type=tenant_days,
        action="append",
        default=[],
        metavar="TENANT=DAYS",
        help="a longer minimum retention for one tenant, for example acme=730d; can be repeated",
    )


def tenant_minimums(given: list[tuple[str, int]]) -> dict[str, int]:
    """Returns the minimum retentions of tenants. Raises UsageError if a tenant is named twice."""
    found = dict(given)
    if len(found) < len(given):
        raise UsageError("--tenant-minimum names a tenant twice")
    return found


def add_minimum(parser: argparse.ArgumentParser, verb: str) -> None:
    """Adds the arguments for the minimum retention of data that is destroyed, and for its override."""
    minimum = parser.add_mutually_exclusive_group(required=True)
    minimum.add_argument(
        "--minimum",
        type=days,
        metavar="DAYS",
        help="the minimum retention of all exchanges, for example 180d",
    )
    minimum.add_argument(
        "--override-minimum",
        action="store_true",
        help=f"{verb} regardless of the minimum, if the law requires it; a hold is never overridden",
    )
    add_tenant_minimum(parser)


def minimum_retention(options: argparse.Namespace) -> tuple[int, dict[str, int]] | None:
    """Returns the minimum retention in days of all exchanges, and of tenants; None if it is overridden.

    Raises UsageError.
    """
    if not options.override_minimum:
        return options.minimum, tenant_minimums(options.tenant_minimum)
    if options.tenant_minimum:
        raise UsageError("--tenant-minimum and --override-minimum contradict each other")
    return None


def open_retention_state(state: Path, ledger: Path | None = None) -> _core.RetentionState:
    """Opens the retention state in an existing directory. Raises UsageError and KeepingError."""
    if not state.is_dir():
        raise UsageError(
            f"{state} is not a directory: the state may contain holds, so nothing is done without it"
        )
    if ledger is not None:
        require_separate(state, ledger)
    return _core.RetentionState(str(state))


def require_separate(state: Path, ledger: Path) -> None:
    """Refuses a state directory inside the ledger. Raises UsageError."""
    if not ledger.is_dir():
        raise UsageError(f"{ledger} is not a directory")
    inside, outside = state.resolve(), ledger.resolve()
    if inside == outside or outside in inside.parents:
        raise UsageError(
            "--state is inside the ledger: processes that write to the ledger could release every hold"
        )


def read_signing_key(path: Path) -> str:
    """Reads the text of a signing key. Raises UsageError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} contains no signing key") from None

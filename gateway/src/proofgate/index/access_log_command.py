"""The command `access-log`: checks the access log against its signed heads."""

from __future__ import annotations

import argparse
import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofgate_schema.counts import format_count

from proofgate import _core, output
from proofgate.aggregate_log import AggregateLogError, StateFiles, entries
from proofgate.another_key import has_key_mismatch_code
from proofgate.evidence import VERDICTS, read_text, read_verifying_key
from proofgate.exit_codes import EXIT_USAGE, ExitCode, fail
from proofgate.index.access_log import AccessLogError, LogFile, find_log_files, replay_log
from proofgate.terminal import show_verdict

_INCOMPLETE, _DIVERGED = ExitCode.INCOMPLETE, ExitCode.DIVERGED


@dataclass(frozen=True)
class SignedHead:
    """A head of an access log, from an entry of the aggregate log."""

    size: int
    root: bytes


class _DivergedError(Exception):
    """The access log or the aggregate log differs from what was signed."""


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        "Exit code 0: the access log is unchanged, 10: the log cannot be compared, 30: the log was changed.",
    )
    parser.add_argument("state", type=Path, metavar="STATE", help="the auditor's --state, or a copy of it")
    parser.add_argument(
        "--key", required=True, metavar="VKEY", help="the auditor's verifying key, or a file that contains it"
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help="a checkpoint of the auditor's log that was stored outside the state; the state must "
        "contain this checkpoint",
    )
    parser.add_argument(
        "--files",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="a directory with files of the access log that were moved out of STATE; can be repeated",
    )
    output.add_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Reads the whole aggregate log, and then the files of each access log that it names."""
    key, found = read_verifying_key(options.key), list[str]()
    held = None if options.against is None else read_text(options.against)
    try:
        told = _read_signed_heads(options.state, key, held)
        logs: dict[int, list[LogFile]] = {}
        for folder in [options.state, *options.files]:
            for begun, files in find_log_files(folder).items():
                logs.setdefault(begun, []).extend(files)
        code = max(
            [_report(begun, told.get(begun, []), logs, found) for begun in sorted({*told, *logs})], default=0
        )
    except (_DivergedError, AggregateLogError) as error:
        if has_key_mismatch_code(str(error)):
            return fail(str(error), EXIT_USAGE)
        found.append(str(error))
        code = _DIVERGED
    except OSError as error:
        return fail(f"{error.filename} cannot be read: {error.strerror}", EXIT_USAGE)
    verdict = VERDICTS[code].partition(":")[0]
    if output.is_data(options):
        output.show(options, {"verdict": verdict, "findings": found})
    else:
        show_verdict("\n".join([*found, verdict]), code)
    return code


def _report(started_at: int, told: list[SignedHead], logs: dict[int, list[LogFile]], found: list[str]) -> int:
    """Checks the lines of one log and adds problems to `found`. Returns the exit code."""
    files = sorted(logs.get(started_at, []), key=lambda part: part.first_line)
    last = told[-1].size if told else 0
    if not files:
        found.append(
            f"log {started_at}: missing, but the aggregate log covers {format_count(last, 'line')} of it"
        )
        return _DIVERGED
    wanted = {one.size: one.root for one in told}

    def compare(tree: _core.Tree) -> None:
        if wanted.get(tree.size, tree.root) != tree.root:
            raise AccessLogError(
                f"the digest of the first {format_count(tree.size, 'line')} of the access log differs from the "
                "digest in the aggregate log: lines were changed"
            )

    try:
        _, tree = replay_log(files, None, compare)
    except AccessLogError as error:
        found.append(f"log {started_at}: {error}")
        return _DIVERGED
    if tree.size < last:
        found.append(
            f"log {started_at}: the access log has only {format_count(tree.size, 'line')}, but the aggregate log "
            f"covers {format_count(last, 'line')}: lines were removed"
        )
        return _DIVERGED
    first = files[0].first_line
    uncovered = tree.size - last
    found.append(
        f"log {started_at}: lines {first} to {tree.size}; not covered by a tree head yet: "
        f"{format_count(uncovered, 'line')}"
    )
    if first and not any(one.size >= first for one in told):
        found.append("  no tree head covers the earlier lines")
        return _INCOMPLETE
    return 0


def _read_signed_heads(state: Path, key: str, held: str | None) -> dict[int, list[SignedHead]]:
    """Reads the whole aggregate log and returns the heads in it. Raises OSError, _DivergedError."""
    name = key.split("+", 1)[0]
    signed = _verify_note((state / "checkpoint").read_text(encoding="utf-8"), key)
    against = None if held is None else _verify_note(held, key)
    tree, told = _core.Tree(), dict[int, list[SignedHead]]()
    compared = against is None or against["size"] == 0
    for entry in entries(StateFiles(state), signed["size"]):
        tree.push(entry)
        if against is not None and tree.size == against["size"]:
            compared = True
            if tree.root != base64.b64decode(against["root"]):
                raise _DivergedError(
                    f"the auditor's log contradicts the given checkpoint of {format_count(tree.size, 'entry')}"
                )
        checkpoint = _parse_head(entry)
        if checkpoint is not None:
            head = _verify_note(checkpoint, key)
            prefix, _, begun = str(head["origin"]).rpartition("/")
            if prefix == f"{name}/access" and begun.isascii() and begun.isdigit():
                told.setdefault(int(begun), []).append(
                    SignedHead(head["size"], base64.b64decode(head["root"]))
                )
    if tree.root != base64.b64decode(signed["root"]):
        raise _DivergedError("the entries of the auditor's log do not match its signed root")
    if not compared:
        raise _DivergedError(
            f"the auditor's log has {format_count(tree.size, 'entry')}, fewer than the given checkpoint"
        )
    return told


def _parse_head(entry: bytes) -> str | None:
    """The checkpoint in an entry with a head of an access log; None for other entries. Raises
    _DivergedError."""
    try:
        told = json.loads(entry)
        return str(told["checkpoint"]) if told["kind"] == "access" else None
    except (ValueError, KeyError, TypeError):
        raise _DivergedError("an entry of the auditor's log is not valid") from None


def _verify_note(note: str, key: str) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads(_core.verify_checkpoint(note, key))
    except _core.ProofError as error:
        raise _DivergedError(
            f"a checkpoint does not verify with the auditor's key: {error} [{error.code}]"
        ) from None
    return told

"""The command `prune`: removes logs after their retention, and leaves tombstones."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from proofgate_schema.counts import format_count

from proofgate import output
from proofgate.exit_codes import EXIT_OK, EXIT_USAGE, ExitCode, fail
from proofgate.keeping import arguments
from proofgate.keeping.ledger import Logs, RetentionLedger

#: Exit code if something in a remaining log cannot be read or trusted.
EXIT_UNREADABLE = ExitCode.INCOMPLETE
_DAMAGE_CODES = frozenset({"damaged", "tombstone_refused"})


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        "Verifies and removes whole logs. Each removed log leaves a signed tombstone, so the "
        "ledger can still be verified. Without --yes, the command changes nothing. It prints "
        "which logs would be removed, and why other logs stay. Exit code 10: something in a log "
        "that stays cannot be read or trusted.",
    )
    arguments.add_ledger(parser)
    parser.add_argument(
        "--older-than",
        type=arguments.days,
        required=True,
        metavar="DAYS",
        help="the retention of all records, for example 180d",
    )
    arguments.add_tenant_minimum(parser)
    parser.add_argument(
        "--against",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a file with checkpoints (signed notes) from outside the ledger, which stay provable "
        "after removal; can be repeated",
    )
    parser.add_argument(
        "--reason",
        metavar="TEXT",
        help="the reason in the tombstones, on one line (default: the retention of DAYS days)",
    )
    arguments.add_author(parser)
    arguments.add_ticket(parser)
    parser.add_argument("--yes", action="store_true", help="carry out the removal")
    output.add_argument(parser, "--json")


def run(options: argparse.Namespace) -> int:
    """Plans the removal, and with --yes carries it out."""
    try:
        logs = _prune(options)
    except (arguments.UsageError, ValueError) as error:
        # The error does not contain the text of a key.
        return fail(str(error), EXIT_USAGE)
    counts = {action: sum(log["action"] == action for log in logs) for action in ("remove", "finish", "stay")}
    if output.is_data(options):
        output.show(options, {"done": options.yes, **counts, "logs": logs})
        return exit_code(logs)
    for line in report_lines(logs, done=options.yes):
        print(line)
    going = counts["remove"] + counts["finish"]
    if options.yes:
        print(f"removed {format_count(going, 'log')}, kept {counts['stay']}")
    else:
        print(
            f"nothing was changed: --yes would remove {format_count(going, 'log')} and keep {counts['stay']}"
        )
    return exit_code(logs)


def _prune(options: argparse.Namespace) -> Logs:
    minimums = arguments.tenant_minimums(options.tenant_minimum)
    author = arguments.author(options, signs=options.yes)
    reason = options.reason or f"the retention of {format_count(options.older_than, 'day')}"
    why = arguments.Justification(author, reason, options.ticket)
    kept = RetentionLedger.from_options(options)
    return kept.prune(options.older_than, minimums, why, options.against, carry_out=options.yes)


def exit_code(logs: Logs) -> int:
    """The exit code: not 0 if a remaining log has something that cannot be read or trusted."""
    codes = {reason["code"] for log in logs if log["action"] == "stay" for reason in log["reasons"]}
    return EXIT_UNREADABLE if codes & _DAMAGE_CODES else EXIT_OK


def report_lines(logs: Logs, *, done: bool) -> Iterator[str]:
    """Yields the printed lines about logs."""
    words = {
        "remove": "removed" if done else "will be removed",
        "finish": "removal completed" if done else "removal will be completed",
    }
    for log in logs:
        held = (
            f"{format_count(log['records'], 'record')}, {format_count(log['exchanges'], 'exchange')}, "
            f"newest {arguments.format_time(log['newest'])}"
        )
        match log["action"]:
            case "remove":
                yield f"{words['remove']}: {log['origin']}\n  {held}, {log['bytes']} bytes"
            case "finish":
                yield f"{words['finish']}: {log['origin']}\n  files that an earlier removal left: {len(log['left'])}"
            case "removed":
                yield f"already removed: {log['origin']}"
            case _:
                yield f"kept: {log['origin']}"
                for reason in log["reasons"]:
                    yield f"  {reason['code']}: {reason['text']}"

"""The command `erase`: destroys salts, so that commitments can no longer be opened."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

from proofgate_schema.counts import format_count

from proofgate import output
from proofgate.exit_codes import EXIT_FAILED, EXIT_OK, EXIT_USAGE, fail
from proofgate.keeping import arguments
from proofgate.keeping.ledger import Logs, RetentionLedger


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        "Without the salts, commitments reveal nothing; all records and proofs stay valid. A "
        "statement of the erasure is signed first. Without --yes nothing is changed. Exit code 1 "
        "if a salt remains.",
    )
    arguments.add_ledger(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--id", metavar="REQUEST_ID", help="one exchange")
    what.add_argument("--tenant", metavar="NAME", help="all exchanges of a tenant")
    parser.add_argument(
        "--until",
        type=arguments.parse_inclusive_end,
        metavar="TIME",
        help="with --tenant: only exchanges up to this time, or up to the end of this day (default: "
        "all so far)",
    )
    arguments.add_minimum(parser, "erase")
    parser.add_argument(
        "--reason", required=True, metavar="TEXT", help="the reason, on one line; it is signed"
    )
    arguments.add_author(parser)
    arguments.add_ticket(parser)
    parser.add_argument("--yes", action="store_true", help="carry out the erasure")
    output.add_argument(parser, "--json")


def run(options: argparse.Namespace) -> int:
    """Plans the erasure, and with --yes carries it out."""
    try:
        logs = _erase(options)
    except (arguments.UsageError, ValueError) as error:
        # The error does not contain the text of a key.
        return fail(str(error), EXIT_USAGE)
    stay = sum(log["action"] == "stay" for log in logs)
    count = sum(log["exchanges"] for log in logs if log["action"] == "erase")
    if output.is_data(options):
        output.show(options, {"done": options.yes, "exchanges": count, "stay": stay, "logs": logs})
    else:
        for line in report_lines(logs, done=options.yes):
            print(line)
        exchanges, kept = format_count(count, "exchange"), format_count(stay, "log")
        if options.yes:
            print(f"destroyed the salts of {exchanges}; kept the salts of {kept}")
        else:
            print(
                f"nothing was changed: --yes would destroy the salts of {exchanges} and keep the salts of {kept}"
            )
    return EXIT_FAILED if stay else EXIT_OK


def _erase(options: argparse.Namespace) -> Logs:
    if options.until is not None and options.tenant is None:
        raise arguments.UsageError("--until needs --tenant")
    policy = arguments.minimum_retention(options)
    tenant = None if options.tenant is None else (options.tenant, options.until)
    author = arguments.author(options, signs=options.yes)
    why = arguments.Justification(author, options.reason, options.ticket)
    kept = RetentionLedger.from_options(options)
    return kept.erase(options.id, tenant, policy, why, carry_out=options.yes)


def report_lines(logs: Logs, *, done: bool) -> Iterator[str]:
    """Yields the printed lines about salts in logs."""
    for log in logs:
        # For some logs, the number of exchanges is unknown.
        exchanges = format_count(log["exchanges"], "exchange") if log["exchanges"] else "any exchanges"
        salts = f"the salts of {exchanges} in {log['origin']}"
        match log["action"]:
            case "erase":
                verb = "erased" if done else "will be erased"
                yield f"{verb}: {salts}"
            case "erased":
                yield f"already erased: {salts}"
            case _:
                yield f"kept: {salts}"
                for reason in log["reasons"]:
                    yield f"  {reason['code']}: {reason['text']}"

"""The command `hold`: legal holds, which override every retention plan and erasure request."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proofgate import _core, output
from proofgate.evidence import read_verifying_key
from proofgate.exit_codes import EXIT_OK, EXIT_USAGE, fail
from proofgate.keeping import arguments


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        _list,
        "`prune` does not remove a log with a record under a hold. `erase` does not destroy the "
        "salts of a record under a hold.",
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    begin = _add_action(actions, "begin", _create_state, "create the state of a retention job; run this once")
    arguments.add_state(begin)
    begin.add_argument(
        "--ledger-key",
        required=True,
        metavar="VKEY",
        help="the ledger's verifying key, or a file that contains it",
    )
    begin.add_argument(
        "--signing-key",
        type=Path,
        required=True,
        metavar="FILE",
        help="the retention job's signing key, created by `keys generate`; its name must not be the ledger's "
        "name, or a path above or below it",
    )

    added = _add_action(actions, "add", _add, "place a hold")
    arguments.add_state(added)
    added.add_argument("--tenant", metavar="NAME", help="records of this tenant")
    added.add_argument("--id", metavar="REQUEST_ID", help="records of this exchange")
    added.add_argument(
        "--since", type=arguments.parse_timestamp, metavar="TIME", help="records of this time or later"
    )
    added.add_argument(
        "--until",
        type=arguments.parse_inclusive_end,
        metavar="TIME",
        help="records up to this time, or up to the end of this day",
    )
    added.add_argument("--all", action="store_true", help="all records")
    added.add_argument("--reason", required=True, metavar="TEXT", help="the reason, on one line")
    arguments.add_ticket(added, "--reference")

    listed = _add_action(actions, "list", _list, "list all holds, including released ones")
    arguments.add_state(listed)

    released = _add_action(actions, "release", _release, "release a hold")
    arguments.add_state(released)
    released.add_argument("id", type=int, metavar="NUMBER", help="the hold's number")
    released.add_argument("--reason", required=True, metavar="TEXT", help="the reason, on one line")

    arguments.add_ticket(released)
    for action in (added, released):
        arguments.add_author(action)
        stated = action.add_argument_group(
            "write the statement to the ledger at once",
            "write a signed statement to the ledger's volume; otherwise the next command that "
            "changes the ledger writes it",
        )
        stated.add_argument("--ledger", type=Path, metavar="DIR", help="the ledger's directory")
        stated.add_argument(
            "--ledger-key", metavar="VKEY", help="the ledger's verifying key, or a file that contains it"
        )
        stated.add_argument(
            "--signing-key", type=Path, metavar="FILE", help="the retention job's signing key"
        )

    for action in (begin, added, listed, released):
        output.add_argument(action, "--json")


def _add_action(actions: Any, name: str, run: Callable[[argparse.Namespace], int], summary: str) -> Any:
    parser = actions.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", allow_abbrev=False
    )
    parser.set_defaults(command=_with_error_handling(run))
    return parser


def _with_error_handling(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    def guarded(options: argparse.Namespace) -> int:
        try:
            return run(options)
        except (arguments.UsageError, ValueError) as error:
            # The error does not contain the text of a key.
            return fail(str(error), EXIT_USAGE)

    return guarded


def _create_state(options: argparse.Namespace) -> int:
    signing = arguments.read_signing_key(options.signing_key)
    keeping = _core.verifying_key(signing.strip())
    _core.RetentionState(str(options.state), (read_verifying_key(options.ledger_key), keeping))
    if output.is_data(options):
        output.show(options, {"keeping_key": keeping}, indent=None)
    else:
        print(f"holds are kept in {options.state}\nretention key: {keeping}")
    return EXIT_OK


def _add(options: argparse.Namespace) -> int:
    scope = {
        "tenant": options.tenant,
        "exchange": options.id,
        "since": options.since,
        "until": options.until,
    }
    given = {name: value for name, value in scope.items() if value is not None}
    if bool(given) == options.all:
        raise arguments.UsageError(
            "give --all, or conditions: --tenant, --id, --since, --until; a record must match all of them"
        )
    why, ledger = _justification(options), _statement_ledger(options)
    retention = arguments.open_retention_state(options.state, options.ledger)
    added = json.loads(retention.add_hold(json.dumps(given), why, arguments.now()))
    _write_hold_statements(retention, ledger)
    _show(options, added)
    return EXIT_OK


def _list(options: argparse.Namespace) -> int:
    holds = json.loads(arguments.open_retention_state(options.state).holds())
    if output.is_data(options):
        output.show(options, {"holds": holds})
        return EXIT_OK
    for hold in holds:
        print(_hold_line(hold))
    active = sum("released" not in hold for hold in holds)
    print(f"active holds: {active} of {len(holds)}")
    return EXIT_OK


def _release(options: argparse.Namespace) -> int:
    why, ledger = _justification(options), _statement_ledger(options)
    retention = arguments.open_retention_state(options.state, options.ledger)
    released = json.loads(retention.release_hold(options.id, why, arguments.now()))
    _write_hold_statements(retention, ledger)
    _show(options, released)
    return EXIT_OK


def _show(options: argparse.Namespace, hold: dict[str, Any]) -> None:
    if output.is_data(options):
        output.show(options, hold, indent=None)
    else:
        print(_hold_line(hold))


def _justification(options: argparse.Namespace) -> arguments.Justification:
    return arguments.Justification(arguments.author(options, signs=True), options.reason, options.ticket)


def _statement_ledger(options: argparse.Namespace) -> tuple[str, str, str] | None:
    """The ledger to which the statement is written, the ledger's key, and the text of the retention job's
    key; None without a ledger. Raises UsageError."""
    given = (options.ledger, options.ledger_key, options.signing_key)
    if given == (None, None, None):
        return None
    if None in given:
        raise arguments.UsageError("give --ledger, --ledger-key and --signing-key together")
    key = read_verifying_key(options.ledger_key)
    return str(options.ledger), key, arguments.read_signing_key(options.signing_key)


def _write_hold_statements(retention: _core.RetentionState, ledger: tuple[str, str, str] | None) -> None:
    if ledger is not None:
        retention.state_holds(*ledger, arguments.now())


def _hold_line(hold: dict[str, Any]) -> str:
    scope = hold["scope"]
    words = [
        f"{name} {arguments.format_time(value) if isinstance(value, int) else value}"
        for name, value in scope.items()
    ]
    text = f"hold {hold['id']}: {', '.join(words) or 'everything'}: {_justification_text(hold)}"
    text += f"; since {arguments.format_time(hold['added'])}"
    if "released" in hold:
        text += f"; released {arguments.format_time(hold['released']['at'])}: {_justification_text(hold['released'])}"
    return text


def _justification_text(told: dict[str, Any]) -> str:
    ticket = f" ({told['ticket']})" if "ticket" in told else ""
    author = f", by {told['author']}" if "author" in told else ""
    return f"{told['reason']}{ticket}{author}"

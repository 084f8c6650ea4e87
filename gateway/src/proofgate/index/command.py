"""The commands `index` and `exchanges`: their arguments, and what they do."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Callable
from datetime import date
from pathlib import Path

from proofgate_schema.counts import format_count

from proofgate import _core, output
from proofgate import logs as process_logs
from proofgate.another_key import has_key_mismatch_code, with_explanation
from proofgate.evidence import read_verifying_key
from proofgate.exit_codes import EXIT_FAILED, EXIT_INVALID_EVIDENCE, EXIT_OK, EXIT_USAGE, ExitCode, fail
from proofgate.index import command_line_reads
from proofgate.index.errors import IndexUnusableError
from proofgate.index.filter import FILTER_NAMES, Filter
from proofgate.index.query import MAX_ROWS, IndexSnapshot
from proofgate.progress import show_progress

_Command = Callable[..., argparse.ArgumentParser]
_FOLLOW_SECONDS = 1.0
_USAGE_ERROR_CODES = {
    "bad_filter",
    "bad_cursor",
    "cursor_differs",
    "cursor_expired",
    "day_pruned",
    "bad_export",
    "index_missing",
}


def add_index(command: _Command) -> None:
    """Adds the command `index`. `command` creates its parser."""
    index = command(
        run,
        "Reads only records that a valid checkpoint covers. Exit code 40 if a log contradicts "
        "its checkpoint; exchanges that were indexed before stay in the index.",
    )
    index.add_argument(
        "--ledger", type=Path, required=True, metavar="DIR", help="the ledger's directory, which is only read"
    )
    index.add_argument(
        "--ledger-key",
        required=True,
        metavar="VKEY",
        help="the ledger's verifying key, or a file that contains it",
    )
    index.add_argument(
        "--keeping-key",
        metavar="VKEY",
        help="the verifying key of the retention job, or a file that contains it; without this key, a "
        "removed log that was never indexed is reported as missing",
    )
    index.add_argument(
        "--index",
        type=Path,
        required=True,
        metavar="DIR",
        help="the index's directory, not on the ledger's volume",
    )
    index.add_argument("--same-volume", action="store_true", help="allow the index on the ledger's volume")
    index.add_argument("--rebuild", action="store_true", help="build the index again from the ledger")
    index.add_argument(
        "--prune-before",
        type=_day,
        metavar="DAY",
        help="permanently remove the days before this day from the index",
    )
    index.add_argument(
        "--follow", action="store_true", help="keep the index up to date until SIGTERM or SIGINT"
    )


def add_exchanges(command: _Command) -> None:
    """Adds the command `exchanges`. `command` creates its parser."""
    exchanges = command(
        show,
        "All pages show the index as it was at the first page.",
    )
    exchanges.add_argument("--index", type=Path, required=True, metavar="DIR", help="the index's directory")
    command_line_reads.add_arguments(exchanges)
    add_filter(exchanges)
    exchanges.add_argument(
        "--newest", action="store_true", help="list the newest first (default: the oldest first)"
    )
    exchanges.add_argument(
        "--limit",
        type=_limit,
        default=50,
        metavar="N",
        help=f"the rows of a page, 1 to {MAX_ROWS} (default: 50)",
    )
    exchanges.add_argument(
        "--after", metavar="CURSOR", help="the cursor that the previous page printed, with the same filters"
    )
    output.add_argument(
        exchanges,
        "--json",
        "--csv",
        more=("csv",),
        meaning="the output format; json and yaml print an object with `exchanges` and `next` (the cursor for "
        "--after); csv prints the cursor on standard error",
    )


def add_filter(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of a filter."""
    for name, metavar, meaning in (
        ("tenant", "NAME", "only of this tenant"),
        ("since", "TIME", "only from this day or time on (UTC without an offset)"),
        ("until", "TIME", "only until the end of this day, or before this time"),
        ("model", "NAME", "only requests for this model"),
        ("provider", "NAME", "only if sent to this provider, possibly after other providers"),
        (
            "verdict",
            "VERDICT",
            "only this verdict: allowed, flagged, redacted, would_block, blocked, denied or refused",
        ),
        (
            "outcome",
            "OUTCOME",
            "only this outcome: complete, upstream_error, …, aborted, open, or a refusal's code",
        ),
        ("rule", "ID", "only if this rule matched"),
        ("id", "ID", "only this request id"),
        ("key", "ID", "only with the API key of this id, as in records"),
        ("key-name", "NAME", "only with API keys of this name, in the configuration of that time"),
        ("min-cost", "USD", "only with at least this cost"),
        ("session", "ID", "only of this session or conversation, as named by the client"),
        (
            "end-user",
            "ID",
            "only of the end user with this pseudonym, as printed by `proofgate audit end-user`",
        ),
        ("end-user-name", "NAME", "only of the end user with this name, if names are recorded"),
        ("client-address", "IP", "only from this client's address, if addresses are recorded"),
        ("agent", "ID", "only of this agent, as named by the client"),
        ("trace-id", "ID", "only of this trace"),
    ):
        parser.add_argument(f"--{name}", metavar=metavar, help=meaning)


def read_filter(options: argparse.Namespace) -> Filter:
    """Returns the filter from the arguments. Raises IndexUnusableError."""
    asked = {name: getattr(options, name) for name in FILTER_NAMES}
    return Filter.parse(asked, newest=getattr(options, "newest", False))


def report_index_error(error: IndexUnusableError) -> int:
    """Reports why an index or a query cannot be used, and returns the exit code."""
    return fail(f"{error} [{error.code}]", EXIT_USAGE if error.code in _USAGE_ERROR_CODES else EXIT_FAILED)


def location_error(index: Path, ledger: Path, *, same_volume: bool) -> str | None:
    """Why an index must not be at this location; None if it may be."""
    place, ledger = index.resolve(), ledger.resolve()
    if place == ledger or ledger in place.parents:
        return "--index is inside the ledger: only workers may write there"
    while not place.exists():
        place = place.parent
    volume = ledger.stat().st_dev
    if not same_volume and place.stat().st_dev == volume != Path("/").stat().st_dev:
        return "--index is on the ledger's volume and could fill that volume: --same-volume allows this"
    return None


def run(options: argparse.Namespace) -> int:
    """Updates an index, once or until a signal."""
    from proofgate.index.indexer import Indexer
    from proofgate.index.schema import day_name
    from proofgate.index.writer import IndexWriter
    from proofgate.key_statements import key_chain

    process_logs.configure("index")
    if not options.ledger.is_dir():
        return fail(f"{options.ledger} is not a directory", EXIT_USAGE)
    refused = location_error(options.index, options.ledger, same_volume=options.same_volume)
    if refused:
        return fail(refused, EXIT_USAGE)
    key = read_verifying_key(options.ledger_key)
    retention_key = read_verifying_key(options.keeping_key) if options.keeping_key is not None else None
    ended = threading.Event()
    try:
        line = key_chain(options.ledger, key)
        writer = IndexWriter.open(options.index, key, line=line, rebuild=options.rebuild)
        try:
            if options.prune_before is not None:
                gone = writer.prune(options.prune_before)
                print(f"removed {format_count(gone, 'day')} before {day_name(options.prune_before)}")
            if options.follow:
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, lambda *_: ended.set())
            indexer = Indexer(writer, key, should_stop=ended.is_set)
            problems: list[str] = []
            while True:
                before = problems
                logs, problems = _core.ledger_logs(
                    str(options.ledger), key, writer.indexed_sizes(), retention_key
                )
                for problem in set(problems).difference(before):
                    logging.getLogger("proofgate.index").error("%s", with_explanation(problem))
                with show_progress("indexing", lambda: format_count(indexer.records, "record")):
                    indexer.read(logs)
                if not options.follow or ended.wait(_FOLLOW_SECONDS):
                    break
        finally:
            writer.close()
    except ValueError as error:
        return fail(f"--ledger-key or --keeping-key: {error}", EXIT_USAGE)
    except OSError as error:
        return fail(f"{error.filename} cannot be read: {error.strerror}", EXIT_FAILED)
    except IndexUnusableError as error:
        return report_index_error(error)
    print(f"{format_count(indexer.records, 'record')} read into {options.index}")
    if problems and not indexer.problems and all(map(has_key_mismatch_code, problems)):
        return ExitCode.ANOTHER_KEY
    return EXIT_INVALID_EVIDENCE if problems or indexer.problems else EXIT_OK


def show(options: argparse.Namespace) -> int:
    """Prints one page of exchanges."""
    from proofgate.index import row_formatting as forms

    try:
        asked = read_filter(options)
        with IndexSnapshot(options.index) as questions:
            page = questions.page(asked, options.limit, options.after)
    except IndexUnusableError as error:
        return report_index_error(error)
    rows = [row.facts for row in page.rows]
    command_line_reads.record_read(
        options, "exchanges", {**asked.to_dict(), "limit": options.limit}, len(rows)
    )
    if output.is_data(options):
        output.show(options, {"exchanges": rows, "next": page.next_cursor})
        return EXIT_OK
    if options.output == "csv":
        sys.stdout.write(forms.csv_header() + "".join(map(forms.csv_row, rows)))
        if page.next_cursor:
            print(f"next: --after {page.next_cursor}", file=sys.stderr)
        return EXIT_OK
    print(forms.table(rows) if rows else "no exchanges")
    if page.next_cursor:
        print(f"next: --after {page.next_cursor}")
    return EXIT_OK


def _limit(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_ROWS:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to {MAX_ROWS}")
    return int(text)


def _day(text: str) -> int:
    try:
        return (date.fromisoformat(text) - date(1970, 1, 1)).days
    except ValueError:
        raise argparse.ArgumentTypeError("expected a day, such as 2026-11-25") from None

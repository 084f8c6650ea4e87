"""The command `replay`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from proofgate_schema.counts import format_count

from proofgate import _core, output
from proofgate.another_key import has_key_mismatch_code, with_explanation
from proofgate.config import InvalidConfigError, load_settings
from proofgate.evidence import read_verifying_key
from proofgate.exit_codes import EXIT_FAILED, EXIT_OK, EXIT_USAGE, ExitCode, fail
from proofgate.index import command_line_reads
from proofgate.keeping.arguments import parse_exclusive_end, parse_timestamp
from proofgate.replay.engines import Engines, fixed_engines, load_archived_policies
from proofgate.replay.report import ReplayReport
from proofgate.replay.run import Replay, exchanges, excuse_version_differences, replay
from proofgate.replay.sources import BodyFolder, BodySource, FallbackSource, StoredBodies

#: Seconds between two progress lines.
_PROGRESS = 5

_DETAILS = """\
Uses only records that a checkpoint signed by the ledger's key covers. Evaluates the stored bodies with the
archived configuration that the record names, as the worker did. With --policy it evaluates them with
another configuration and reports what would change. Prints no text of a body without --show-text."""

_EPILOG = """\
exit codes:
  0   every verdict is reproduced; with --policy: every decision stays the same
  1   a verdict differs, or a log contradicts its checkpoint or cannot be read
  2   wrong usage: arguments, configuration, a key or a ledger that cannot be read
  3   nothing could be replayed
"""


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        _DETAILS,
        _EPILOG,
    )
    parser.add_argument("ledger", type=Path, metavar="LEDGER", help="the ledger's directory")
    parser.add_argument(
        "--key", required=True, metavar="VKEY", help="the ledger's verifying key, or a file that contains it"
    )
    parser.add_argument(
        "--keeping-key",
        metavar="VKEY",
        help="the verifying key of the retention job, or a file that contains it; without this key, a "
        "removed log is reported as a problem",
    )
    parser.add_argument(
        "--shred-keys",
        type=Path,
        metavar="DIR",
        help="the folder of tenants' shred keys, which decrypt stored bodies",
    )
    parser.add_argument(
        "--bodies",
        type=Path,
        metavar="DIR",
        help="a folder with bodies that were stored outside the ledger: ID.request and ID.response",
    )
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="evaluate with this worker's YAML file instead; files that it names are not read",
    )
    parser.add_argument(
        "--since",
        type=parse_timestamp,
        metavar="TIME",
        help="only exchanges that started at this time or later (2026-01-31T12:00:00Z)",
    )
    parser.add_argument(
        "--until",
        type=parse_exclusive_end,
        metavar="TIME",
        help="only exchanges that started on this day or earlier, or before this time",
    )
    parser.add_argument("--tenant", metavar="NAME", help="only exchanges of this tenant")
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="only exchanges that request this model; refused requests have no model",
    )
    parser.add_argument("--id", metavar="REQUEST_ID", help="only this exchange")
    parser.add_argument("--limit", type=_count, metavar="N", help="the maximum number of exchanges")
    parser.add_argument(
        "--examples",
        type=_count,
        default=10,
        metavar="N",
        help="how many differing exchanges to list (default: %(default)s)",
    )
    parser.add_argument(
        "--show-text",
        action="store_true",
        help="show up to 2000 characters of the bodies of listed exchanges",
    )
    output.add_argument(parser, "--json")
    command_line_reads.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Replays, prints a report, and returns the exit code."""
    if options.bodies is not None and not options.bodies.is_dir():
        return fail(f"{options.bodies} is not a directory", EXIT_USAGE)
    try:
        engines: Engines = load_archived_policies(options.ledger)
        if options.policy is not None:
            engines = fixed_engines(load_settings(options.policy))
        keeping = None if options.keeping_key is None else read_verifying_key(options.keeping_key)
        core = _core.RecordedExchanges(
            str(options.ledger),
            read_verifying_key(options.key),
            keeping,
            None if options.shred_keys is None else str(options.shred_keys),
            since_us=options.since,
            until_us=options.until,
            tenant=options.tenant,
            model=options.model,
            request_id=options.id,
        )
    except InvalidConfigError as error:
        return fail(f"the configuration is not valid\n{error}", EXIT_USAGE)
    except ValueError as error:
        # The error does not contain the text of a key.
        return fail(str(error), EXIT_USAGE)
    except _core.LedgerError as error:
        return fail(f"{error} [{error.code}]", EXIT_USAGE)
    names = ("ledger", "since", "until", "tenant", "model", "id", "policy")
    command_line_reads.record_read(options, "replay", {name: getattr(options, name) for name in names})
    sources: list[BodySource] = [StoredBodies()]
    if options.bodies is not None:
        sources.append(BodyFolder(options.bodies))
    replays = replay(exchanges(core, options.limit), FallbackSource(sources), engines)
    report = ReplayReport(options.examples, options.show_text)
    for replayed in _show_progress(
        replays if options.policy is not None else excuse_version_differences(replays)
    ):
        report.add(replayed)
    problems = core.problems + report.problems
    _print(report, core.unverified, problems, options)
    if problems and not report.difference_count and all(map(has_key_mismatch_code, problems)):
        return ExitCode.ANOTHER_KEY
    if report.difference_count or problems:
        return EXIT_FAILED
    return EXIT_OK if report.compared_count else ExitCode.NOTHING_REPLAYED


def _show_progress(replays: Iterable[list[Replay]]) -> Iterator[list[Replay]]:
    """Logs the progress of long work to standard error."""
    due = time.monotonic() + _PROGRESS
    for count, replayed in enumerate(replays, 1):
        yield replayed
        if time.monotonic() >= due:
            print(f"proofgate: {format_count(count, 'exchange')}", file=sys.stderr, flush=True)
            due = time.monotonic() + _PROGRESS


def _print(report: ReplayReport, unverified: int, problems: list[str], options: argparse.Namespace) -> None:
    if output.is_data(options):
        document = report.document() | {"unverified": unverified, "problems": problems}
        output.show(options, document)
        return
    print(report.text())
    if unverified:
        print(f"\nleft out, because no checkpoint covers them: {format_count(unverified, 'exchange')}")
    for problem in problems:
        print(f"\nproblem: {with_explanation(problem)}")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise argparse.ArgumentTypeError("expected a whole number")
    return int(text)

"""The command `auditor`: its arguments, the one-time check, and the service."""

from __future__ import annotations

import argparse
import logging
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from proofgate_schema.counts import format_count

from proofgate import _core, another_key, logs, output
from proofgate.argument_types import parse_address
from proofgate.auditor import worker_arguments
from proofgate.auditor.served_ledger import ROOT, ServedLedger
from proofgate.evidence import VERDICTS, read_verifying_key
from proofgate.exit_codes import EXIT_FAILED, EXIT_USAGE, ExitCode, fail
from proofgate.index import index_services
from proofgate.keys import warn_if_exposed
from proofgate.mirror import auditor_arguments as mirrored
from proofgate.replica.replica import ledger_folder
from proofgate.siem import auditor_arguments as streamed
from proofgate.terminal import one_line

if TYPE_CHECKING:
    from proofgate.auditor.watch import LedgerWatcher
    from proofgate.auditor.witnesses import Witnesses

_EXIT_CODES = {
    "ok": ExitCode.OK,
    "incomplete": ExitCode.INCOMPLETE,
    "diverged": ExitCode.DIVERGED,
    "invalid": ExitCode.INVALID,
}
_SCRUB_MIB = 8
#: A byte limit for polls that is never reached.
_UNLIMITED = (1 << 64) - 1


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        "Verifies each checkpoint when a worker signs it, verifies older records repeatedly, and "
        "reports contradictions as findings. With --once, it checks the ledger once and returns "
        "the exit code of fsck: 0, 10, 30 or 40.",
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--ledger", type=Path, metavar="DIR", help="the ledger's directory, which is only read"
    )
    worker_arguments.add_arguments(parser, source)
    parser.add_argument(
        "--state",
        type=Path,
        required=True,
        metavar="DIR",
        help="the auditor's own directory, not on the ledger's volume",
    )
    parser.add_argument(
        "--signing-key",
        type=Path,
        required=True,
        metavar="FILE",
        help="the auditor's signing key, created by `keys generate`",
    )
    parser.add_argument(
        "--ledger-key",
        required=True,
        metavar="VKEY",
        help="the ledger's verifying key, or a file that contains it",
    )
    parser.add_argument(
        "--keeping-key",
        metavar="VKEY",
        help="the verifying key of the retention job, or a file that contains it; a log with a "
        "tombstone that this key signed is reported as removed and is not a finding",
    )
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--new-aggregate",
        action="store_true",
        help="start a new log of tree heads in an empty --state; use this on the first start, or "
        "after the state was lost",
    )
    start.add_argument(
        "--held",
        type=Path,
        metavar="FILE",
        help="a file with an older checkpoint of the log of tree heads, stored outside the state; the "
        "state must contain this checkpoint. If the file does not exist, the auditor starts a "
        "new log in an empty --state",
    )
    parser.add_argument(
        "--witness-policy",
        type=Path,
        metavar="FILE",
        help="a c2sp.org/tlog-policy: the witnesses to ask for cosignatures on the log of tree heads, "
        "and the quorum that a checkpoint needs before it is published (default: none)",
    )
    parser.add_argument(
        "--allow-http-witnesses",
        action="store_true",
        help="allow http URLs for witnesses on other machines; use this only in a network that you trust",
    )
    parser.add_argument(
        "--witness-ca",
        type=Path,
        metavar="FILE",
        help="the CA certificates for witnesses, in PEM (default: the system's)",
    )
    parser.add_argument(
        "--listen",
        type=parse_address,
        default="127.0.0.1:9091",
        metavar="ADDRESS",
        help="the address to listen on (default: %(default)s)",
    )
    parser.add_argument(
        "--beat",
        type=_positive,
        default=10.0,
        metavar="SECONDS",
        help="the time between two tree heads of a log (default: %(default)s)",
    )
    parser.add_argument(
        "--second-look",
        type=_positive,
        default=5.0,
        metavar="SECONDS",
        help="the time until a suspected problem is checked again, before it becomes a finding; "
        "choose more than the cache time of a network file system (default: %(default)s)",
    )
    parser.add_argument(
        "--stall",
        type=_positive,
        default=30.0,
        metavar="SECONDS",
        help="the time until records without a checkpoint become a finding (default: %(default)s)",
    )
    parser.add_argument(
        "--scrub",
        type=int,
        default=_SCRUB_MIB,
        metavar="MIB",
        help="how many MiB to verify again each second (default: %(default)s)",
    )
    index_services.add_arguments(parser)
    mirrored.add_arguments(parser)
    streamed.add_arguments(parser)
    parser.add_argument("--once", action="store_true", help="check once, print the findings, and exit")
    output.add_argument(parser, "--json", meaning="with --once: the form in which findings are printed")


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError("expected more than 0 and at most 86400 seconds")
    return value


def run(options: argparse.Namespace) -> int:
    """Checks the ledger once, or audits it until a signal."""
    from proofgate.auditor.watch import LedgerWatcher
    from proofgate.auditor.witnesses import Witnesses, WitnessUrlError, check_urls
    from proofgate.key_statements import chain_statements, chain_statements_from_files

    logs.configure("auditor")
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    # Readers that need a ledger of files use the copies of what the workers serve.
    options.files = options.ledger
    if options.ledger is None and options.replica is not None:
        options.files = ledger_folder(options.replica)
    parts = (*(() if options.ledger is not None else (worker_arguments,)), index_services, mirrored, streamed)
    refused = _folder_error(options) or next(
        filter(None, (part.argument_error(options) for part in parts)), None
    )
    if refused:
        return fail(refused, EXIT_USAGE)
    if options.ledger is not None and _is_first_run(options):
        foreign = another_key.check_ledger_key(options.ledger, read_verifying_key(options.ledger_key))
        if foreign:
            return fail(foreign, ExitCode.ANOTHER_KEY)
    if options.witness_ca is not None:
        try:
            ssl.create_default_context(cafile=options.witness_ca)
        except OSError as error:
            why = "it contains no readable certificate" if isinstance(error, ssl.SSLError) else error.strerror
            return fail(f"--witness-ca: {options.witness_ca}: {why} [auditor_witness_ca]", EXIT_USAGE)
    warn_if_exposed(options.signing_key)
    try:
        served = worker_arguments.served_ledger(options)
        auditor = _open_auditor(options, served)
        urls = check_urls(auditor.witness_urls(), options.allow_http_witnesses)
    except OSError as error:
        return fail(f"{error.filename} cannot be read: {error.strerror}", EXIT_USAGE)
    except WitnessUrlError as error:
        return fail(f"--witness-policy: {error} [auditor_policy]", EXIT_USAGE)
    except ValueError as error:
        # The error does not contain the text of a key.
        return fail(f"invalid key in --signing-key or in a file of verifying keys: {error}", EXIT_USAGE)
    if options.new_aggregate:
        logging.getLogger("proofgate.auditor").warning(
            "starting a new aggregate log in %s: it contains no earlier tree heads", options.state
        )
    watch = LedgerWatcher(auditor, options.scrub << 20, served_ledger=served)
    keeping_key = None if options.keeping_key is None else read_verifying_key(options.keeping_key)
    ledger_key = read_verifying_key(options.ledger_key)

    def statements() -> list[str]:
        try:
            found = (
                chain_statements(options.ledger, ledger_key)
                if served is None
                else chain_statements_from_files(served.statements(), ledger_key)
            )
            return [note for _, note in found]
        except OSError:
            # An unreadable ledger is reported elsewhere.
            return []

    watch.statements = statements
    try:
        watch.replica = worker_arguments.replica(options, served, (ledger_key, keeping_key))
    except OSError as error:
        return fail(f"--replica: {error.filename} cannot be used: {error.strerror}", EXIT_USAGE)
    watch.mirrors = mirrored.mirrors(options, auditor, keeping_key, watch.replica)
    if watch.replica is not None:
        watch.replica.mirrors = watch.mirrors
    witnesses = Witnesses(auditor, urls, authorities=options.witness_ca)
    return _check_once(watch, witnesses, options) if options.once else _serve(watch, witnesses, options)


def _is_first_run(options: argparse.Namespace) -> bool:
    """Whether this auditor has no state about the ledger yet. A wrong key is then a mistake, not an
    attack."""
    return bool(options.new_aggregate or (options.held is not None and not options.held.exists()))


def _folder_error(options: argparse.Namespace) -> str | None:
    if options.ledger is None:
        return None
    if options.replica is not None:
        return "--replica is for the logs of workers: do not use it with --ledger"
    ledger, state = options.ledger.resolve(), options.state.resolve()
    if not ledger.is_dir():
        return f"{options.ledger} is not a directory"
    if state == ledger or ledger in state.parents:
        return "--state is inside the ledger: restoring an older ledger would also roll back the auditor"
    return None


def _open_auditor(options: argparse.Namespace, served: ServedLedger | None) -> _core.Auditor:
    from proofgate.auditor.watch import to_microseconds

    return _core.Auditor(
        str(options.ledger) if served is None else ROOT,
        str(options.state),
        options.signing_key.read_text(encoding="utf-8"),
        read_verifying_key(options.ledger_key),
        to_microseconds(options.beat),
        to_microseconds(options.second_look),
        to_microseconds(options.stall),
        options.new_aggregate,
        options.held is not None,
        _read_held_checkpoint(options.held) if options.held else None,
        None if options.witness_policy is None else options.witness_policy.read_bytes(),
        None if options.keeping_key is None else read_verifying_key(options.keeping_key),
        served,
    )


def _read_held_checkpoint(path: Path) -> str | None:
    """The held checkpoint of the aggregate log; None if the file does not exist. An empty file is refused."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _serve(watch: LedgerWatcher, witnesses: Witnesses, options: argparse.Namespace) -> int:
    from proofgate.auditor import service
    from proofgate.http_server import ListenError, bind
    from proofgate.index.oidc_settings import OidcSettingsError
    from proofgate.index.readers import ReadersError
    from proofgate.siem.cursor import CursorError

    try:
        listener = bind(options.listen)
    except ListenError as error:
        return fail(f"{error} [{error.code}]", EXIT_FAILED)
    try:
        with (
            listener,
            index_services.open_index_services(
                options, read_verifying_key(options.ledger_key), watch.auditor
            ) as kept,
        ):
            watch.streams = streamed.streams(options, read_verifying_key(options.ledger_key))
            consumers = [
                *([kept.enqueue] if kept.enqueue else []),
                *(stream.enqueue for stream in watch.streams),
            ]
            watch.on_accepted = consumers
            if watch.replica is not None:
                watch.replica.on_copied, watch.on_accepted = consumers, [watch.replica.enqueue]
                indexes = [] if kept.index is None else [kept.index.rejected_origins]
                watch.replica.rejected_by_readers = [
                    *indexes,
                    *(stream.rejected_origins for stream in watch.streams),
                ]
                watch.replica.read_counts = [stream.cursor.sent_counts for stream in watch.streams]
            watch.access_log_head = None if kept.reader_port is None else kept.reader_port.access_log_head
            service.run(watch, witnesses, listener, kept)
    except (ReadersError, OidcSettingsError, CursorError) as error:
        return fail(f"{error} [{error.code}]", EXIT_FAILED)
    except ValueError:
        # The message does not repeat the text of the key.
        return fail("--export-key: the file contains no signing key", EXIT_USAGE)
    return 0


def _check_once(watch: LedgerWatcher, witnesses: Witnesses, options: argparse.Namespace) -> int:
    # The first poll of a new aggregate has just read everything, so there is nothing to verify again.
    scrub = 0 if options.new_aggregate else _UNLIMITED
    done = watch.poll(_UNLIMITED, 0)
    if scrub:
        done = watch.poll(_UNLIMITED, scrub)
    if witnesses.urls:
        witnesses.request_due()
        done = watch.poll(_UNLIMITED, scrub)
    while done["suspicious"]:
        time.sleep(options.second_look)
        done = watch.poll(_UNLIMITED, scrub)
        # A suspicion about a worker that does not answer cannot be resolved.
        if (
            not done["changed"]
            and watch.served_ledger is not None
            and not all(watch.served_ledger.reachable_by_shard().values())
        ):
            break
    findings = watch.findings()
    code = max((_EXIT_CODES[finding["verdict"]] for finding in findings), default=0)
    if output.is_data(options):
        report = {"exit_code": code, "findings": findings, "shards": watch.heads()}
        output.show(options, report | {"witnesses": watch.witnesses()})
        return code
    for finding in findings:
        print(f"{finding['code']}: {one_line(finding['origin'])}\n  {one_line(finding['message'])}")
    for witness in watch.witnesses():
        print(
            f"witness {witness['name']}: {witness['last'] or 'not contacted yet'}, "
            f"{witness['size']} tree heads cosigned"
        )
    print(
        f"{format_count(watch.totals.records, 'record')}, {format_count(watch.totals.entries, 'tree head')} "
        f"in the aggregate log\n{VERDICTS[code]}"
    )
    return code

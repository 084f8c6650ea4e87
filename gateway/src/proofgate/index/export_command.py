"""The commands `export` and `verify-export`: their arguments and output."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from proofgate_schema.counts import format_count

from proofgate import _core, logs, output
from proofgate.evidence import read_verifying_key
from proofgate.exit_codes import EXIT_INCOMPLETE, EXIT_INVALID_EVIDENCE, EXIT_OK, EXIT_USAGE, fail
from proofgate.index import command_line_reads
from proofgate.index.command import add_filter, read_filter, report_index_error
from proofgate.index.errors import IndexUnusableError
from proofgate.index.indexer import PROGRESS_SECONDS
from proofgate.index.row_formatting import replace_unprintable
from proofgate.index.schema import format_time
from proofgate.progress import show_progress
from proofgate.terminal import show_verdict

if TYPE_CHECKING:
    from proofgate.index.checked_export import CheckedExport


def add_export(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command `export`. `command` creates its parser."""
    export = command(
        run,
        "Anyone with the verifying key can check the export. An export of a tenant, a time range "
        "or both also proves that no exchange is left out between two exchanges of the export. Exit code 10: "
        "exchanges of unreadable logs are left out; the manifest names these logs.",
    )
    export.add_argument("--index", type=Path, required=True, metavar="DIR", help="the index's directory")
    export.add_argument(
        "--ledger", type=Path, required=True, metavar="DIR", help="the directory of the index's ledger"
    )
    command_line_reads.add_arguments(export)
    add_filter(export)
    export.add_argument(
        "--out", type=Path, required=True, metavar="DIR|TAR", help="a new directory, or a new .tar or .tar.gz"
    )
    export.add_argument(
        "--signing-key",
        type=Path,
        metavar="FILE",
        help="sign the manifest with this key, created by `proofgate keys generate`",
    )


def add_verify(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command `verify-export`. `command` creates its parser."""
    check = command(
        verify,
        "Exit code 0: all exchanges are proved. Exit code 10: the exchanges in the export are "
        "proved, but something is missing: an admission between two other admissions, an end, or something "
        "that the manifest claims. Exit code 40: a check fails.",
    )
    check.add_argument("export", type=Path, metavar="DIR|TAR", help="the export")
    check.add_argument(
        "--key", required=True, metavar="VKEY", help="the ledger's verifying key, or a file that contains it"
    )
    check.add_argument(
        "--signer",
        metavar="VKEY",
        help="require a signature by this verifying key, or a file that contains it",
    )
    output.add_argument(check)


def run(options: argparse.Namespace) -> int:
    """Writes an export."""
    from proofgate.index.export import ExportSummary, export

    logs.configure("export")
    spoken = time.monotonic()

    exchanges = 0

    def progress(written: ExportSummary) -> None:
        nonlocal spoken, exchanges
        exchanges = written.exchanges
        # A terminal shows its own progress line.
        if not sys.stderr.isatty() and time.monotonic() - spoken >= PROGRESS_SECONDS:
            spoken = time.monotonic()
            logging.getLogger("proofgate.index").info("%d exchanges written", written.exchanges)

    try:
        signing_key = None
        if options.signing_key is not None:
            signing_key = options.signing_key.read_text(encoding="utf-8").strip()
            _core.verifying_key(signing_key)
        asked = read_filter(options)
        command_line_reads.record_read(options, "export", {**asked.to_dict(), "out": options.out})
        with show_progress("exporting", lambda: format_count(exchanges, "exchange")):
            written = export(options.index, options.ledger, asked, options.out, signing_key, progress)
    except IndexUnusableError as error:
        return report_index_error(error)
    except OSError as error:
        return fail(f"{error.filename or options.out}: {error.strerror}", EXIT_USAGE)
    except ValueError:
        # The message does not repeat the text of the key.
        return fail("--signing-key: the file contains no signing key", EXIT_USAGE)
    for origin, why in sorted(written.unreadable.items()):
        fail(f"left out, because it cannot be read: {origin}: {why}", EXIT_INCOMPLETE)
    print(
        f"wrote {options.out}: {format_count(written.exchanges, 'exchange')}, {format_count(written.records, 'record')}"
    )
    print("To verify it, get the ledger's verifying key from another source than this export:")
    print(f"  proofgate audit verify-export {options.out} --key verifying-key")
    return EXIT_INCOMPLETE if written.unreadable else EXIT_OK


def verify(options: argparse.Namespace) -> int:
    """Checks an export, and prints what it proves and what it does not."""
    from proofgate.index import verify_export
    from proofgate.index.checked_export import ExportContradictedError

    key = read_verifying_key(options.key)
    signer = read_verifying_key(options.signer) if options.signer is not None else None
    try:
        checked = verify_export.verify(options.export, key, signer)
    except IndexUnusableError as error:
        return report_index_error(error)
    except OSError as error:
        return fail(f"{error.filename or options.export}: {error.strerror or error}", EXIT_USAGE)
    except ValueError as error:
        return fail(f"--key or --signer: {error}", EXIT_USAGE)
    except ExportContradictedError as error:
        return fail(f"not verified: {error}", EXIT_INVALID_EVIDENCE)
    gaps = checked.gaps() if checked.claims_completeness else {}
    code = EXIT_OK if checked.is_complete and not gaps else EXIT_INCOMPLETE
    *found, verdict = _render_result(checked, gaps)
    if output.is_data(options):
        counts = {"exchanges": checked.exchanges, "records": checked.records}
        output.show(options, {"verdict": verdict, **counts, "signer": checked.signed_by, "findings": found})
    else:
        show_verdict("\n".join([*found, verdict]), code)
    return code


def _render_result(checked: CheckedExport, gaps: dict[tuple[str, str], list[int]]) -> list[str]:
    manifest = checked.manifest
    asked = ", ".join(
        f"{name} {format_time(value) if name in ('since', 'until') else value}"
        for name, value in manifest["filter"].items()
    )
    lines = [
        f"asked for: {asked or 'all'}",
        f"shown: {format_count(checked.exchanges, 'exchange')}, {format_count(checked.records, 'record')}, "
        "each in a signed log",
    ]
    if checked.signed_by is not None:
        lines.append(f"shown: {checked.signed_by} signed the manifest")
    else:
        lines.append("not shown: that the manifest is unchanged; use --signer to require a signature")
    if manifest.get("left_out"):
        lines.append(f"left out by the filter: exchanges that differ in {', '.join(manifest['left_out'])}")
    lines += [f"missing: {what}, which the manifest claims" for what in checked.missing]
    lines += [
        f"missing: exchanges of {origin}, which could not be read when the export was created"
        for origin in checked.unreadable
    ]
    if checked.incomplete_exchanges:
        lines.append(
            "missing: the end, or a further attempt, of "
            f"{format_count(checked.incomplete_exchanges, 'exchange')}{_open_count_text(checked)}"
        )
    if "counts" not in manifest:
        lines.append("not shown: that no end, verdict or refusal is missing; this export does not count them")
    verdict = "verified" if checked.is_complete and not gaps else "incomplete"
    if not checked.claims_completeness:
        lines.append(
            "not shown: that nothing is left out; an export of one tenant shows this, with or "
            "without a time range"
        )
        return [*map(replace_unprintable, lines), verdict]
    for (tenant, origin), numbers in sorted(checked.numbers.items()):
        if (tenant, origin) in gaps:
            some = ", ".join(map(str, gaps[tenant, origin]))
            lines.append(f"missing: requests {some} of {tenant} in {origin}")
            continue
        first, last = min(numbers.exported, default=0), max(numbers.exported, default=0)
        before = first == 1 or first - 1 in numbers.seen
        after = last + 1 in numbers.seen
        lines.append(f"shown: requests {first} to {last} of {tenant} in {origin}, with none missing between")
        if not before:
            lines.append(f"not shown: that request {first - 1} does not match the filter")
        if not after:
            lines.append(f"not shown: that request {last} is the last request")
    lines.append(
        "not shown: that the export has every request that was refused for another reason than a "
        "policy, and every log without a matching exchange; these requests and logs are not "
        "numbered"
    )
    return [*map(replace_unprintable, lines), verdict]


def _open_count_text(checked: CheckedExport) -> str:
    claimed = checked.manifest.get("counts", {}).get("open", 0)
    return (
        f"; according to the manifest, {claimed} had not ended when the export was created" if claimed else ""
    )

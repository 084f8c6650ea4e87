"""The command `payload show`: shows the stored bodies of an exchange to holders of its keys."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from proofgate import _core
from proofgate.evidence import EvidenceError, read_verifying_key
from proofgate.exit_codes import EXIT_FAILED, EXIT_OK, fail
from proofgate.index import command_line_reads
from proofgate.terminal import show_bytes


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        show,
        "Verifies the records first. A body that cannot be decrypted, or does not match the "
        "commitment in its record, is not shown.",
    )
    parser.add_argument("action", choices=("show",), help="show: print a body, or list the stored bodies")
    parser.add_argument("request_id", metavar="ID", help="the exchange: the x-request-id of its response")
    parser.add_argument("--ledger", type=Path, required=True, metavar="DIR", help="the ledger's directory")
    parser.add_argument(
        "--key", required=True, metavar="VKEY", help="the ledger's verifying key, or a file that contains it"
    )
    parser.add_argument(
        "--shred-keys", type=Path, required=True, metavar="DIR", help="the folder of tenants' shred keys"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--request",
        dest="body",
        action="store_const",
        const="request",
        help="print the request that the client sent",
    )
    which.add_argument(
        "--response",
        dest="body",
        action="store_const",
        const="response",
        help="print the response that the client received",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="with --request or --response: write to this new file instead of standard output",
    )
    parser.add_argument(
        "--raw",
        action="store_true",
        help="do not escape control characters on a terminal (a file or a pipe always gets the exact bytes)",
    )
    command_line_reads.add_arguments(parser)


def show(options: argparse.Namespace) -> int:
    """Writes one body, or lists the stored bodies."""
    if options.out is not None and options.body is None:
        raise EvidenceError("--out is for one body: give --request or --response as well")
    key = read_verifying_key(options.key)
    try:
        exchange = _core.stored_payload(str(options.ledger), key, options.request_id, str(options.shred_keys))
    except ValueError as error:
        raise EvidenceError(str(error)) from None
    bodies = {
        "request": (exchange.request, exchange.no_request),
        "response": (exchange.response, exchange.no_response),
    }
    if options.body is None:
        command_line_reads.record_read(options, "payload show", {"id": options.request_id})
        for name, (body, why) in bodies.items():
            told = f"{len(body)} bytes" if body is not None else _reason(why)
            print(f"{name}: {told}")
        return EXIT_OK
    body, why = bodies[options.body]
    if body is None:
        return fail(f"the {options.body} is not shown: {_reason(why)}", EXIT_FAILED)
    command_line_reads.record_read(options, "payload show", {"id": options.request_id, "body": options.body})
    _write(options.out, body, raw=options.raw)
    return EXIT_OK


def _reason(why: tuple[str, str] | None) -> str:
    code, sentence = why or ("payload_not_stored", "it was not stored")
    return f"{sentence} [{code}]"


def _write(out: Path | None, body: bytes, *, raw: bool) -> None:
    if out is None:
        show_bytes(body, raw=raw)
        return
    try:
        # Only the owner may read the body.
        file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "wb") as opened:
            opened.write(body)
    except OSError as error:
        raise EvidenceError(f"{out} cannot be written: {error.strerror}") from None

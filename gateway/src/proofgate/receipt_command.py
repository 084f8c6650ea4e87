"""The command `receipt`, and the check of its file by `verify`."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proofgate import output
from proofgate.cose import command as cose_command
from proofgate.evidence import EvidenceError, read_verifying_key
from proofgate.exit_codes import EXIT_INVALID_EVIDENCE, EXIT_OK, EXIT_USAGE, fail
from proofgate.receipts import ContradictedError, Receipt, UrlSource, VerifiedReceipt, fetch
from proofgate.receipts.verified_receipt import verify
from proofgate.terminal import show_verdict


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        "A receipt has the records of the exchange and their signed proofs. Uses the traffic "
        "port and the API key of the exchange's tenant. Waits until a checkpoint covers the "
        "exchange.",
    )
    parser.add_argument(
        "request_id",
        metavar="ID",
        help="the exchange: the x-request-id of its response; without --url, the file of its receipt",
    )
    parser.add_argument("--url", metavar="URL", help="the gateway's URL, for example http://127.0.0.1:8080")
    parser.add_argument(
        "--api-key-file", type=Path, metavar="FILE", help="the file with the tenant's API key"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="the output file (default: ID.receipt.json)")
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="how long to wait for the receipt (default: 10, at most 600)",
    )
    cose_command.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Fetches a receipt and writes it unchanged, or reads one from a file. Writes COSE receipts on
    request."""
    wrong = _argument_error(options)
    if wrong is not None:
        return fail(wrong, EXIT_USAGE)
    if options.url is None:
        out = Path(options.request_id)
        receipt = _read_receipt(out)
    else:
        receipt, out = _fetch_receipt(options)
    if options.format == "cose":
        try:
            print("\n".join(cose_command.write(receipt, out, options)))
        except ContradictedError as error:
            return fail(f"not verified, nothing was signed: {error}", EXIT_INVALID_EVIDENCE)
    else:
        print("To verify it, get the ledger's verifying key from another source than this gateway:")
        print(f"  proofgate verify {out} --key verifying-key --request REQUEST --response ANSWER")
    return EXIT_OK


def _argument_error(options: argparse.Namespace) -> str | None:
    if options.url is None and options.format == "json":
        return "give --url and --api-key-file, or give a receipt file and --format cose"
    if (options.url is None) != (options.api_key_file is None):
        return "give --url and --api-key-file together"
    if options.url is None and options.out is not None:
        return "--out needs --url: without --url, COSE receipts are written next to the receipt file"
    return cose_command.argument_error(options)


def _fetch_receipt(options: argparse.Namespace) -> tuple[Receipt, Path]:
    """Fetches a receipt from a gateway and writes it. Returns the receipt and its file."""
    try:
        key = options.api_key_file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise EvidenceError(f"{options.api_key_file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise EvidenceError(f"{options.api_key_file} contains no API key: it is not text") from None
    if not key:
        raise EvidenceError(f"{options.api_key_file} contains no API key: it is empty")
    out = options.out or Path(f"{Path(options.request_id).name}.receipt.json")
    receipt, text = fetch(UrlSource(options.url, key), options.request_id, options.timeout)
    try:
        out.write_text(text)
    except OSError as error:
        raise EvidenceError(f"{out} cannot be written: {error.strerror}") from None
    print(f"wrote {out}")
    if not receipt.complete:
        print("the exchange has not ended yet: fetch the receipt again after the exchange has ended")
    return receipt, out


def _read_receipt(path: Path) -> Receipt:
    try:
        return Receipt.parse(path.read_text())
    except OSError as error:
        raise EvidenceError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise EvidenceError(f"{path} is not a receipt: it is not UTF-8 text") from None


def run_verify(options: argparse.Namespace) -> int:
    """Checks a receipt, and prints what it proves and what it does not."""
    key = read_verifying_key(options.key)
    bodies = {"request": options.request, "response": options.response}
    digests = {name: _digest(path) for name, path in bodies.items() if path is not None}
    receipt = _read_receipt(options.proof)
    try:
        verified = verify(receipt, key, digests.get("request"), digests.get("response"))
    except ContradictedError as error:
        return fail(f"not verified: {error}", EXIT_INVALID_EVIDENCE)
    lines = _report_lines(verified, bodies)
    if output.is_data(options):
        output.show(options, _document(verified, lines))
    else:
        show_verdict("\n".join(lines), EXIT_OK)
    return EXIT_OK


def _document(verified: VerifiedReceipt, lines: list[str]) -> dict[str, Any]:
    """The result for programs: the records with their logs, and the messages for people."""
    return {
        "verified": True,
        "exchange": verified.receipt.id,
        "records": [
            {
                "kind": record.kind,
                "origin": record.checkpoint.origin,
                "index": record.index,
                "size": record.checkpoint.size,
            }
            for record in verified.records
        ],
        "bodies": list(verified.bodies),
        "shown": [line.removeprefix("shown: ") for line in lines if line.startswith("shown: ")],
        "not_shown": [line.removeprefix("not shown: ") for line in lines if line.startswith("not shown: ")],
    }


def _report_lines(verified: VerifiedReceipt, bodies: dict[str, Path | None]) -> list[str]:
    lines = [f"exchange: {verified.receipt.id}"]
    for record in verified.records:
        signed = record.checkpoint
        lines.append(f"shown: {record.kind} is record {record.index} of {signed.size} in {signed.origin}")
    admission = verified.record_of_kind("admission")
    end = verified.record_of_kind("completion") or verified.record_of_kind("rejection")
    if admission is not None:
        facts = admission.facts
        further = [record.facts.get("provider") for record in verified.records if record.kind == "attempt"]
        asked = ", then ".join(map(str, [facts.get("provider"), *further]))
        # Files and batches have no model.
        model = f" for {facts['model']}" if facts.get("model") else ""
        lines.append(
            f"shown: the request of tenant {facts.get('tenant')} to {facts.get('endpoint')}{model} "
            f"was recorded, with provider {asked}"
        )
    denied = verified.record_of_kind("rejection")
    if denied is not None and "tenant_seq" in denied.facts:
        facts = denied.facts
        model = f" for {facts['model']}" if facts["model"] else ""
        lines.append(
            f"shown: the denied request of tenant {facts['tenant']} to {facts.get('endpoint')}{model} "
            f"was recorded, with key {facts['key']}"
        )
    if end is not None:
        outcome = end.facts.get("outcome") or end.facts.get("code")
        lines.append(f"shown: the end was recorded with status {end.facts.get('status')} ({outcome})")
    for name, path in bodies.items():
        if path is not None:
            lines.append(f"shown: {path} is the recorded {name}, byte for byte")
        else:
            lines.append(f"not shown: the bytes of the {name}; check them with --{name} FILE")
    if verified.record_of_kind("completion") is None and verified.record_of_kind("rejection") is None:
        lines.append(
            "not shown: how the exchange ended, and whether there were more attempts; "
            "the receipt has no record of its end"
        )
    if verified.attempts is not None and verified.attempts[0] < verified.attempts[1]:
        shown, counted = verified.attempts
        lines.append(f"not shown: {counted - shown} of {counted} attempts; the receipt lacks their records")
    lines += [
        "not shown: that the provider sent this response; the gateway signed what it recorded",
        "not shown: that the log still contains this; keep its checkpoint to compare later",
        "verified",
    ]
    return lines


def _digest(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise EvidenceError(f"{path} cannot be read: {error.strerror}") from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= 600:
        raise argparse.ArgumentTypeError("expected a number from 0 to 600")
    return seconds

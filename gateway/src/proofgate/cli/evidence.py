"""The arguments of the commands that prove and verify."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from proofgate import commands as handlers
from proofgate import output
from proofgate.argument_types import parse_number_in_range

_Describe = Callable[..., argparse.ArgumentParser]


def prove(command: _Describe) -> None:
    """Describes `prove`."""
    parser = command(
        handlers.prove,
        "Writes two files for each record: ID.KIND.json (the stored bytes) and "
        "ID.KIND.tlog-proof (a C2SP proof with the signed checkpoint).",
    )
    parser.add_argument(
        "request_id", metavar="REQUEST_ID", help="the exchange: the x-request-id of its response"
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--ledger", type=Path, metavar="DIR", help="the ledger's directory")
    source.add_argument(
        "--admin", metavar="URL", help="the admin port of a running worker, for example http://127.0.0.1:9090"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the output directory (default: the current one)",
    )
    parser.add_argument(
        "--timeout",
        type=_proof_timeout,
        default=5.0,
        metavar="SECONDS",
        help="with --admin: how long to wait for a checkpoint that covers the exchange (default: 5, "
        "at most 30)",
    )
    parser.add_argument(
        "--key",
        metavar="VKEY",
        help="with --ledger: check signatures with this verifying key, or a file that contains it",
    )
    parser.add_argument(
        "--scan",
        action="store_true",
        help="with --ledger: search the whole ledger; use this if the records are not near the time "
        "in the id",
    )
    _add_shred_keys(parser, "with --ledger: ")
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="with --admin: the file with the admin token"
    )


def configuration(command: _Describe) -> None:
    """Describes `configuration`."""
    parser = command(
        handlers.configuration,
        "Records name the configuration in force by its digest. The worker archives each "
        "configuration beside the ledger, without secrets. Exit code 40 if the archived file "
        "does not match its digest.",
    )
    parser.add_argument("ledger", type=Path, metavar="LEDGER", help="the ledger's directory")
    parser.add_argument(
        "digest",
        metavar="DIGEST",
        help="the digest: the field `settings` of the last `open` or `config` record before your "
        "record, or the field `config` if that record has no `settings`; the first 16 digits are "
        "enough",
    )


def verify(command: _Describe) -> None:
    """Describes `verify`."""
    parser = command(
        handlers.verify,
        "With --request and --response, the command also checks that these bodies were recorded, byte for "
        "byte. Exit code 40 if a check fails.",
    )
    parser.add_argument(
        "proof", type=Path, metavar="RECEIPT|PROOF", help="the receipt, or with --record a .tlog-proof file"
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="the record's stored bytes")
    parser.add_argument("--request", type=Path, metavar="FILE", help="with a receipt: the request's body")
    parser.add_argument("--response", type=Path, metavar="FILE", help="with a receipt: the response's body")
    parser.add_argument(
        "--key", required=True, metavar="VKEY", help="the verifying key, or a file that contains it"
    )
    output.add_argument(parser)


def reveal(command: _Describe) -> None:
    """Describes `reveal`."""
    from proofgate.index import command_line_reads

    parser = command(
        handlers.reveal,
        "Give a proof and its record to check offline: the proof contains the salt. Or give a "
        "request id and --ledger. Exit code 40 if the commitment does not open.",
    )
    parser.add_argument(
        "evidence", metavar="PROOF|REQUEST_ID", help="the .tlog-proof file, or with --ledger a request id"
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="the record's stored bytes")
    parser.add_argument("--ledger", type=Path, metavar="DIR", help="the ledger's directory")
    _add_shred_keys(parser, "with --ledger: ")
    command_line_reads.add_arguments(parser)
    parser.add_argument(
        "--body",
        type=Path,
        required=True,
        metavar="FILE",
        help="the body of the request or the response, byte for byte",
    )
    parser.add_argument(
        "--key", required=True, metavar="VKEY", help="the verifying key, or a file that contains it"
    )
    output.add_argument(parser)


def consistency(command: _Describe) -> None:
    """Describes `consistency`."""
    parser = command(
        handlers.consistency,
        "Uses the ledger's tree, or a proof to check offline. Exit code 40 if the checkpoints "
        "are not consistent.",
    )
    parser.add_argument(
        "old", type=Path, metavar="OLD", help="the file with the older checkpoint (a signed note)"
    )
    parser.add_argument(
        "new", type=Path, metavar="NEW", help="the file with the newer checkpoint (a signed note)"
    )
    parser.add_argument(
        "--key", required=True, metavar="VKEY", help="the verifying key, or a file that contains it"
    )
    shown = parser.add_mutually_exclusive_group(required=True)
    shown.add_argument("--ledger", type=Path, metavar="DIR", help="the ledger's directory")
    shown.add_argument(
        "--proof", type=Path, metavar="FILE", help="the file of a proof that an earlier run wrote with --out"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the RFC 9162 consistency proof, one base64 hash on each line",
    )
    output.add_argument(parser)


def fsck(command: _Describe) -> None:
    """Describes `fsck`."""
    parser = command(
        handlers.fsck,
        "Exit code 0: verified, 10: incomplete,\n30: diverged from a signed checkpoint, 40: invalid.",
    )
    parser.add_argument(
        "directory", type=Path, metavar="DIR", help="the directory of a ledger, a shard or an incarnation"
    )
    parser.add_argument(
        "--key",
        metavar="VKEY",
        help="the verifying key, or a file that contains it; without a key, signatures are not checked",
    )
    parser.add_argument(
        "--against",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a file with checkpoints (signed notes) from outside the ledger; can be repeated. Each "
        "log that a checkpoint names must exist, contain all records that the checkpoint covers, "
        "and have the checkpoint's root at that size",
    )
    parser.add_argument(
        "--keeping-key",
        metavar="VKEY",
        help="the verifying key of the retention job, or a file that contains it; without this key, a "
        "removed log is reported as incomplete",
    )
    parser.add_argument(
        "--mirror",
        action="store_true",
        help="the directory was restored from a mirror: do not check salts, trees and continuations of logs",
    )
    _add_shred_keys(parser, "")
    output.add_argument(parser, "--json")


def export_leaves(command: _Describe) -> None:
    """Describes `export-leaves`."""
    parser = command(
        handlers.export_leaves,
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="the incarnation's directory")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the output file")


def _add_shred_keys(parser: argparse.ArgumentParser, when: str) -> None:
    parser.add_argument(
        "--shred-keys",
        type=Path,
        metavar="DIR",
        help=f"{when}the folder of tenants' shred keys, for salts that need one",
    )


def _proof_timeout(text: str) -> float:
    return parse_number_in_range(text, 0.001, 30, whole=False)

"""An auditor of workers that each have a volume of their own: the arguments that name them."""

from __future__ import annotations

import argparse
from pathlib import Path

from proofgate.auditor.served import PATIENCE_SECONDS, ServedLedger, checked, read_list
from proofgate.auditor.worker_files import LOOK_SECONDS


def add_arguments(parser: argparse.ArgumentParser, source: argparse._MutuallyExclusiveGroup) -> None:
    """Adds the arguments; those in `source` replace a mounted ledger."""
    source.add_argument(
        "--worker",
        action="append",
        default=[],
        metavar="SHARD=URL",
        help="instead of --ledger: the admin port of a shard's worker, which serves its part of the "
        "ledger; repeat for each worker",
    )
    source.add_argument(
        "--workers",
        type=Path,
        metavar="FILE",
        help="instead of --ledger: a JSON object from shard to URL, reloaded every second",
    )
    parser.add_argument(
        "--worker-token",
        type=Path,
        metavar="FILE",
        help="the token for the workers, as printed by `proofgate keys auditor-token`",
    )


def wrong_arguments(options: argparse.Namespace) -> str | None:
    """Why the arguments do not go together; None when they do."""
    # They read the ledger as files, which no one folder has.
    for name in ("index", "readers", "mirror", "siem"):
        if getattr(options, name):
            return f"--{name} needs --ledger: it reads a mounted ledger"
    try:
        _listed(options)
    except ValueError as error:
        return f"--worker or --workers: {error}"
    except OSError as error:
        return f"{options.workers} cannot be read: {error.strerror}"
    return None


def served(options: argparse.Namespace) -> ServedLedger | None:
    """The ledger that the workers of the arguments serve; None where it is mounted."""
    if options.ledger is not None:
        return None
    # A single look has no time to wait, and all of it to read.
    patience, look = (0.0, float("inf")) if options.once else (PATIENCE_SECONDS, LOOK_SECONDS)
    return ServedLedger(lambda: _listed(options), options.worker_token, patience, look)


def _listed(options: argparse.Namespace) -> dict[str, str]:
    if options.workers is not None:
        return read_list(options.workers)
    pairs = [text.partition("=") for text in options.worker]
    if len({shard for shard, _, _ in pairs}) != len(pairs):
        raise ValueError("the worker of a shard is given twice")
    return checked({shard: url for shard, _, url in pairs})

"""The arguments for an auditor of workers with separate volumes."""

from __future__ import annotations

import argparse
from pathlib import Path

from proofgate.auditor.served_ledger import (
    FAILURE_GRACE_SECONDS,
    ServedLedger,
    check_worker_urls,
    read_worker_list,
)
from proofgate.auditor.worker_files import PASS_BUDGET_SECONDS, WorkerFiles
from proofgate.replica.replica import WORKER_TIMEOUT_SECONDS as COPY_SECONDS
from proofgate.replica.replica import Replica


def add_arguments(parser: argparse.ArgumentParser, source: argparse._MutuallyExclusiveGroup) -> None:
    """Adds the arguments. Those in the group `source` replace a mounted ledger."""
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
    parser.add_argument(
        "--replica",
        type=Path,
        metavar="DIR",
        help="with --worker or --workers: copy verified data to this directory, for --index, --mirror "
        "and --siem",
    )


def argument_error(options: argparse.Namespace) -> str | None:
    """Why the arguments contradict each other; None if they do not."""
    for name in ("index", "mirror", "siem"):
        if getattr(options, name) and options.replica is None:
            return f"--{name} needs --ledger, or --replica with copies of the data that workers serve"
    if options.replica is not None and options.once:
        return "--replica cannot be combined with --once"
    if options.replica is not None and _is_below(options.index, options.replica):
        return "--index is inside --replica: the auditor removes unknown files from --replica"
    try:
        _read_workers(options)
    except ValueError as error:
        return f"--worker or --workers: {error}"
    except OSError as error:
        return f"{options.workers} cannot be read: {error.strerror}"
    return None


def served_ledger(options: argparse.Namespace) -> ServedLedger | None:
    """The ledger that the workers in the arguments serve; None if the ledger is mounted."""
    if options.ledger is not None:
        return None
    # A single check reports an unreachable worker immediately, and has no time limit for reading.
    patience, look = (0.0, float("inf")) if options.once else (FAILURE_GRACE_SECONDS, PASS_BUDGET_SECONDS)
    return ServedLedger(lambda: _read_workers(options), options.worker_token, patience, look)


def replica(
    options: argparse.Namespace, served: ServedLedger | None, keys: tuple[str, str | None]
) -> Replica | None:
    """The copies of what the workers in the arguments serve; None if nothing reads copies.

    `keys` are the keys of the ledger and of the retention job. Raises OSError.
    """
    if served is None or options.replica is None:
        return None
    # Without an index, copies serve only mirrors and sinks. An exchange may end in the log after the one in
    # which it started, so one day is kept.
    keep_days = options.index_days if options.index is not None else 1
    return Replica(
        options.replica,
        keys,
        served.urls,
        lambda url: WorkerFiles(url, options.worker_token, COPY_SECONDS),
        served.statements,
        keep_days=keep_days,
    )


def _is_below(path: Path | None, folder: Path) -> bool:
    return path is not None and folder.resolve() in (path.resolve(), *path.resolve().parents)


def _read_workers(options: argparse.Namespace) -> dict[str, str]:
    if options.workers is not None:
        return read_worker_list(options.workers)
    pairs = [text.partition("=") for text in options.worker]
    if len({shard for shard, _, _ in pairs}) != len(pairs):
        raise ValueError("two workers are given for one shard")
    return check_worker_urls({shard: url for shard, _, url in pairs})

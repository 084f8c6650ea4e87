"""An auditor that keeps an index of what it has accepted, and answers readers from it: its arguments, and the
parts."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from proofgate import _core
from proofgate.index.command import require_apart

if TYPE_CHECKING:
    from proofgate.index.routes import Desk

#: Takes what was accepted: directories of logs and signed notes.
Offer = Callable[[list[tuple[str, str]]], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to the command."""
    parser.add_argument(
        "--index",
        type=Path,
        metavar="DIR",
        help="keep an index of the exchanges in what was accepted; not on the ledger's volume",
    )
    parser.add_argument(
        "--readers",
        type=Path,
        metavar="FILE",
        help="who may ask the index over the port: a JSON object of digests of keys (default: nobody)",
    )


def wrong_arguments(options: argparse.Namespace) -> str | None:
    """Why the arguments do not go together; None when they do."""
    if options.index is None:
        return "--readers ask an index: give --index" if options.readers is not None else None
    if options.once:
        return "--index goes with an auditor that stays: `proofgate index` looks once"
    return require_apart(options.index, options.ledger, same_volume=False)


@contextmanager
def kept(
    options: argparse.Namespace, ledger_key: str, auditor: _core.Auditor
) -> Iterator[tuple[Offer | None, Desk | None]]:
    """The index and what answers readers, as far as the arguments ask for them.

    Raises IndexUnusableError, ReadersError, and OSError for the access log.
    """
    with ExitStack() as stack:
        if options.index is None:
            yield None, None
            return
        from proofgate.index.follow import AuditedIndex

        desk = None
        if options.readers is not None:
            from proofgate.index.access_log import AccessLog
            from proofgate.index.readers import Readers
            from proofgate.index.routes import Desk

            access_log = AccessLog(options.state, time.time_ns() // 1000, auditor.reads_told())
            if access_log.changed is not None:
                auditor.reads_changed(access_log.changed)
            stack.callback(access_log.close)
            desk = Desk(options.index, Readers(options.readers), access_log)
        index = stack.enter_context(AuditedIndex(options.index, ledger_key))
        yield index.offer, desk

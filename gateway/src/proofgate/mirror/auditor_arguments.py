"""An auditor's mirrors of the data that it has accepted: arguments and components."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from proofgate import _core

if TYPE_CHECKING:
    from proofgate.mirror.mirror import Mirror
    from proofgate.replica.replica import Replica

_MAX_LAG_SECONDS = 600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to the command."""
    parser.add_argument(
        "--mirror",
        action="append",
        default=[],
        metavar="DIR|s3://BUCKET/PREFIX?…",
        help="copy ended logs and checkpoints to a directory, or to a bucket with object lock; can be "
        "repeated. Parameters after '?': lock=compliance|governance&days=N, endpoint, region, "
        "credentials (a directory with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; default: the "
        "environment), ca, http=allow",
    )
    parser.add_argument(
        "--mirror-patience",
        type=float,
        default=_MAX_LAG_SECONDS,
        metavar="SECONDS",
        help="the time until logs that are not mirrored become a finding (default: %(default)s)",
    )


def argument_error(options: argparse.Namespace) -> str | None:
    """Why the arguments contradict each other; None if they do not."""
    from proofgate.mirror.target_address import TargetAddressError, parse

    if options.mirror and options.once:
        return "--mirror cannot be combined with --once"
    if not 0 < options.mirror_patience <= 86_400:
        return "--mirror-patience: expected more than 0 and at most 86400 seconds"
    try:
        names = [parse(text).name for text in options.mirror]
    except TargetAddressError as error:
        return f"--mirror: {error}"
    if len(set(names)) != len(names):
        return "--mirror: a target is given twice"
    for text in options.mirror:
        if "://" in text:
            continue
        place = Path(text).resolve()
        if options.ledger is not None and _is_below(place, options.ledger):
            return "--mirror is inside the ledger: a process that can write there could change the mirror"
        if options.replica is not None and _is_below(place, options.replica):
            return "--mirror is inside --replica: the auditor removes unknown files from --replica"
    return None


def mirrors(
    options: argparse.Namespace, auditor: _core.Auditor, keeping_key: str | None, replica: Replica | None
) -> list[Mirror]:
    """Creates the mirrors that the arguments request, of a mounted ledger or of copies."""
    if not options.mirror:
        return []
    from proofgate.mirror.mirror import Mirror
    from proofgate.mirror.target_address import parse

    return [
        Mirror(
            parse(text),
            auditor,
            options.files,
            options.state,
            keeping_key,
            options.mirror_patience,
            copies=replica,
        )
        for text in options.mirror
    ]


def _is_below(place: Path, folder: Path) -> bool:
    return folder.resolve() in (place, *place.parents)

"""The command `sign-in-link`: creates a one-time link to the explorer of a running gateway."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from proofgate.exit_codes import EXIT_FAILED, EXIT_OK, EXIT_USAGE, fail


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        "The link works once, within 10 minutes, for the gateway that `proofgate quickstart --start` runs.",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path("proofgate"),
        metavar="DIR",
        help="the folder of the quickstart (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Creates a link and prints it."""
    from proofgate.local.folder import QuickstartFolder
    from proofgate.quickstart import QuickstartError

    folder = QuickstartFolder(options.directory)
    try:
        print(folder.sign_in_url(folder.read_running().explorer))
    except QuickstartError as error:
        return fail(str(error), EXIT_USAGE)
    except OSError as error:
        return fail(f"{folder.auditor} cannot be written: {error.strerror}", EXIT_FAILED)
    return EXIT_OK

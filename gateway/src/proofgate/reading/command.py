"""The command `keys auditor-token`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from proofgate.exit_codes import EXIT_OK, EXIT_USAGE, fail
from proofgate.reading.token import auditor_token


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        "The token is derived from the workers' admin token and gives no other access. Pass it "
        "to `proofgate audit run --worker-token` if each worker has its own volume.",
    )
    parser.add_argument(
        "token_file",
        type=Path,
        metavar="FILE",
        help="the file with the workers' admin token (admin.tokenFile)",
    )


def run(options: argparse.Namespace) -> int:
    """Prints the token."""
    try:
        admin_token = options.token_file.read_text(encoding="ascii").strip()
    except OSError as error:
        return fail(f"{options.token_file} cannot be read: {error.strerror}", EXIT_USAGE)
    except UnicodeDecodeError:
        return fail(f"{options.token_file} is not a token: it is not text", EXIT_USAGE)
    if len(admin_token.split()) != 1:
        return fail(f"{options.token_file} does not contain exactly one token on one line", EXIT_USAGE)
    print(auditor_token(admin_token))
    return EXIT_OK

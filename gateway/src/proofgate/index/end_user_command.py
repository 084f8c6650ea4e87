"""The command `end-user`: prints the pseudonyms of an end user in records."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from proofgate import _core, output
from proofgate.exit_codes import EXIT_FAILED, EXIT_OK, EXIT_USAGE, fail

#: Maximum bytes of the name of an end user.
_MAX_USER_BYTES = 1024


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        show,
        "Prints one pseudonym for each shred key of the tenant, newest first. The name is not an "
        "argument, because other processes can see arguments.",
    )
    parser.add_argument(
        "--tenant", required=True, metavar="NAME", help="the tenant whose requests contain the name"
    )
    parser.add_argument(
        "--shred-keys", type=Path, metavar="DIR", help="the folder of tenants' shred keys, if there is one"
    )
    output.add_argument(parser)


def show(options: argparse.Namespace) -> int:
    """Prints the pseudonyms."""
    name = sys.stdin.read(_MAX_USER_BYTES + 2).removesuffix("\n")
    if not 1 <= len(name.encode()) <= _MAX_USER_BYTES:
        return fail(f"the name must have 1 to {_MAX_USER_BYTES} bytes", EXIT_USAGE)
    folder = None if options.shred_keys is None else str(options.shred_keys)
    try:
        found = _core.end_user_ids(options.tenant, name, folder)
    except _core.LedgerError as error:
        return fail(f"{error} [{error.code}]", EXIT_FAILED)
    if not found:
        return fail(f"{folder} has no key of {options.tenant} [shred_key_missing]", EXIT_FAILED)
    if output.is_data(options):
        output.show(options, {"tenant": options.tenant, "pseudonyms": found})
    else:
        print("\n".join(found))
    return EXIT_OK

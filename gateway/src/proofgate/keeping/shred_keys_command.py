"""The command `shred-keys`: lists, creates and removes tenants' shred keys."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proofgate import output
from proofgate.exit_codes import EXIT_OK, EXIT_USAGE, fail
from proofgate.keeping.shred_key_files import ShredKeyFolder, ShredKeySecret, ShredKeysError

_EXAMPLE = """\
a Secret, for example:
  kubectl get secret NAME -o json | proofgate ledger shred-keys rotate - TENANT | kubectl replace -f -
"""
#: Maximum bytes of the input: more than a Secret in JSON can have.
_MAX_MANIFEST_BYTES = 8 << 20


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        _list,
        "The keys are in a folder, or in a Secret. The command never prints a key. `proofgate "
        "ledger shred` destroys keys.",
        _EXAMPLE,
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listed = _add_action(actions, "list", _list, "list the ids of all keys in a folder, newest first")
    listed.add_argument("directory", type=Path, metavar="DIR", help="the folder")
    output.add_argument(listed)
    rotated = _add_action(
        actions, "rotate", _rotate, "create a new first key for each tenant; older keys stay for older salts"
    )
    dropped = _add_action(actions, "drop", _drop, "remove keys that `shred` has signed as destroyed")
    for action in (rotated, dropped):
        action.add_argument(
            "where",
            metavar="DIR|-",
            help="the folder, or - to read a Secret as JSON from standard input and write it to standard "
            "output",
        )
    rotated.add_argument(
        "tenants", nargs="+", metavar="TENANT", help="the tenant; a tenant without a key gets its first key"
    )
    dropped.add_argument("tenant", metavar="TENANT", help="the tenant")
    dropped.add_argument(
        "--key",
        dest="keys",
        action="append",
        required=True,
        metavar="ID",
        help="the key's id; can be repeated",
    )


def _add_action(actions: Any, name: str, run: Callable[[argparse.Namespace], int], summary: str) -> Any:
    parser = actions.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", allow_abbrev=False
    )
    parser.set_defaults(command=_with_error_handling(run))
    return parser


def _with_error_handling(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    def guarded(options: argparse.Namespace) -> int:
        try:
            return run(options)
        except ShredKeysError as error:
            return fail(str(error), EXIT_USAGE)
        except OSError as error:
            return fail(f"{error.filename}: {error.strerror}", EXIT_USAGE)

    return guarded


def _list(options: argparse.Namespace) -> int:
    listed = ShredKeyFolder(options.directory).ids()
    if output.is_data(options):
        output.show(options, {tenant: list(keys) for tenant, keys in listed.items()})
        return EXIT_OK
    for tenant, keys in listed.items():
        print(f"{tenant}: {' '.join(keys)}")
    return EXIT_OK


def _rotate(options: argparse.Namespace) -> int:
    def rotate(keys: ShredKeyFolder | ShredKeySecret) -> None:
        for tenant in options.tenants:
            print(f"{tenant}: {keys.rotate(tenant)}", file=sys.stderr)

    return _change(options.where, rotate)


def _drop(options: argparse.Namespace) -> int:
    return _change(options.where, lambda keys: keys.drop(options.tenant, options.keys))


def _change(where: str, change: Callable[[ShredKeyFolder | ShredKeySecret], None]) -> int:
    if where != "-":
        change(ShredKeyFolder(Path(where)))
        return EXIT_OK
    secret = ShredKeySecret(sys.stdin.read(_MAX_MANIFEST_BYTES))
    change(secret)
    print(secret.text())
    return EXIT_OK

"""The command `quickstart`: its arguments, and what it prints."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable
from pathlib import Path

from proofgate import quickstart
from proofgate.argument_types import address
from proofgate.exit_codes import EXIT_OK, EXIT_USAGE, fail
from proofgate.keys import KeyFileError, one_key
from proofgate.quickstart import OPENAI, Setup

#: Where the key for OpenAI is found, as OpenAI's own clients find it.
PROVIDER_KEY_VARIABLE = "OPENAI_API_KEY"


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command; `command` makes one."""
    parser = command(
        run,
        "The folder contains a commented configuration, a ledger, its signing key, a tenant's "
        "API key, and the provider's API key, which is read from the environment. Prints the "
        "commands that start the worker, send a request, and verify its records.",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path("proofgate"),
        metavar="DIR",
        help="the folder to create; never overwrites a folder (default: %(default)s)",
    )
    parser.add_argument(
        "--base-url", default=OPENAI, metavar="URL", help="the provider's base URL (default: %(default)s)"
    )
    parser.add_argument(
        "--key-env",
        metavar="VARIABLE",
        help=f"the environment variable with the provider's API key (default: {PROVIDER_KEY_VARIABLE} "
        "for the default provider, none for another provider)",
    )
    parser.add_argument(
        "--model",
        action="append",
        metavar="NAME",
        help=f"a model to serve; can be repeated (default: {', '.join(Setup.models)})",
    )
    parser.add_argument(
        "--name",
        default=Setup.name,
        metavar="NAME",
        help="the ledger's name; it is in every checkpoint and cannot be changed later (default: "
        "%(default)s)",
    )
    for name, default, whom in (
        ("--listen", Setup.listen, "clients"),
        ("--admin-listen", Setup.admin_listen, "the administrator"),
    ):
        parser.add_argument(
            name,
            type=address,
            default=default,
            metavar="ADDRESS",
            help=f"the address for {whom} (default: %(default)s)",
        )


def run(options: argparse.Namespace) -> int:
    """Creates the folder and prints the next commands."""
    folder: Path = options.directory
    variable = options.key_env or (PROVIDER_KEY_VARIABLE if options.base_url == OPENAI else None)
    key = os.environ.get(variable) if variable else None
    if variable and not key:
        return fail(f"the provider's API key is missing: export it as {variable}", EXIT_USAGE)
    try:
        setup = Setup(
            base_url=options.base_url,
            provider_key=one_key(key, f"in the variable {variable}") if key else None,
            models=tuple(options.model or Setup.models),
            name=options.name,
            listen=options.listen,
            admin_listen=options.admin_listen,
        )
        quickstart.create(folder, setup)
    except (KeyFileError, quickstart.QuickstartError) as error:
        return fail(str(error), EXIT_USAGE)
    configuration = shlex.quote(str(folder / quickstart.CONFIGURATION))
    print(f"created {folder}: a configuration, an empty ledger, and keys that only you can read\n")
    print(f"Start the worker:\n  proofgate serve --config {configuration}\n")
    print(quickstart.instructions(folder, setup))
    return EXIT_OK

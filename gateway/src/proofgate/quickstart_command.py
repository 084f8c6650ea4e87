"""The command `quickstart`: its arguments, and what it prints."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable
from pathlib import Path

from proofgate import quickstart
from proofgate.exit_codes import EXIT_OK, EXIT_USAGE, fail
from proofgate.keys import KeyFileError, one_key
from proofgate.quickstart import OPENAI, Setup

#: Where the key for OpenAI is found, as OpenAI's own clients find it.
PROVIDER_KEY_VARIABLE = "OPENAI_API_KEY"


def add(command: Callable[..., argparse.ArgumentParser], address: Callable[[str], str]) -> None:
    """Adds the command; `command` makes one, `address` reads an address."""
    parser = command(
        "quickstart",
        run,
        "make a folder with all that a worker without Kubernetes needs",
        "A commented\nconfiguration, a ledger, its signing key, a tenant's key and the provider's, which is\n"
        "read from the environment. Prints how to start it, ask it and prove what it did.",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path("proofgate"),
        metavar="DIR",
        help="the folder to make; never overwrites one (default: %(default)s)",
    )
    parser.add_argument(
        "--base-url", default=OPENAI, metavar="URL", help="the provider (default: %(default)s)"
    )
    parser.add_argument(
        "--key-env",
        metavar="VARIABLE",
        help="the environment variable with the provider's key (default: "
        f"{PROVIDER_KEY_VARIABLE} for the default provider, no key for any other)",
    )
    parser.add_argument(
        "--model",
        action="append",
        metavar="NAME",
        help=f"a model to serve; may be given again (default: {', '.join(Setup.models)})",
    )
    parser.add_argument(
        "--name",
        default=Setup.name,
        metavar="NAME",
        help="the ledger's name, in every checkpoint, permanently (default: %(default)s)",
    )
    for name, default, whom in (
        ("--listen", Setup.listen, "clients"),
        ("--admin-listen", Setup.admin_listen, "its administrator"),
    ):
        parser.add_argument(
            name, type=address, default=default, metavar="ADDRESS", help=f"for {whom} (default: %(default)s)"
        )


def run(options: argparse.Namespace) -> int:
    """Makes the folder and tells what to do with it."""
    folder: Path = options.directory
    variable = options.key_env or (PROVIDER_KEY_VARIABLE if options.base_url == OPENAI else None)
    key = os.environ.get(variable) if variable else None
    if variable and not key:
        return fail(f"the provider's key is not there: export it as {variable}", EXIT_USAGE)
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
    print(f"wrote {folder}: a configuration, an empty ledger, and keys that only you can read\n")
    print(f"start it\n  proofgate serve --config {configuration}\n")
    print(quickstart.instructions(folder, setup))
    return EXIT_OK

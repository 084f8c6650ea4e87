"""The command `quickstart`: its arguments and its output."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from proofgate import quickstart
from proofgate.argument_types import parse_address
from proofgate.exit_codes import EXIT_OK, EXIT_USAGE, fail
from proofgate.keys import KeyFileError, parse_api_key
from proofgate.quickstart import OPENAI_URL, QuickstartError, QuickstartSetup

#: Environment variable with the API key for OpenAI, as in OpenAI's own clients.
PROVIDER_KEY_VARIABLE = "OPENAI_API_KEY"
EXPLORER_LISTEN = "127.0.0.1:9091"


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        "The folder contains a commented configuration, a ledger, its signing key, a tenant's "
        "API key, and the provider's API key, which is read from the environment. Prints the "
        "commands that start the worker, send a request, and verify its records. With --start, the command "
        "runs the worker, and an auditor with the explorer, until Ctrl-C. Then each process logs "
        "to logs/NAME.log in the folder. When a log has more than 8 MiB, it is renamed to "
        "NAME.log.1 and replaces the earlier file of that name.",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path("proofgate"),
        metavar="DIR",
        help="the folder to create; never overwrites a folder (default: %(default)s)",
    )
    parser.add_argument(
        "--start",
        action="store_true",
        help="run the worker, the auditor, its index and the explorer in the foreground; a folder "
        "that `quickstart` created earlier is started without changes",
    )
    parser.add_argument(
        "--demo",
        action="store_true",
        help="with --start: use a simulated provider, which needs no API key, and create three tenants",
    )
    parser.add_argument(
        "--traffic",
        action="store_true",
        help="with --demo: send requests once everything runs (demo-traffic)",
    )
    parser.add_argument("--base-url", metavar="URL", help=f"the provider's base URL (default: {OPENAI_URL})")
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
        help=f"a model to serve; can be repeated (default: {', '.join(QuickstartSetup.models)})",
    )
    parser.add_argument(
        "--name",
        metavar="NAME",
        help="the ledger's name; it is in every checkpoint and cannot be changed later (default: "
        f"{QuickstartSetup.name})",
    )
    for name, default, whom in (
        ("--listen", QuickstartSetup.listen, "clients"),
        ("--admin-listen", QuickstartSetup.admin_listen, "the administrator"),
    ):
        parser.add_argument(
            name, type=parse_address, metavar="ADDRESS", help=f"the address for {whom} (default: {default})"
        )
    parser.add_argument(
        "--explorer-listen",
        type=parse_address,
        default=EXPLORER_LISTEN,
        metavar="ADDRESS",
        help="with --start: the address of the auditor and the explorer (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Creates the folder and prints the next commands, or starts it."""
    folder: Path = options.directory
    refused = _argument_error(options)
    if refused:
        return fail(refused, EXIT_USAGE)
    try:
        if options.start and quickstart.is_quickstart(folder):
            _require_no_setup_options(folder, options)
            return _start(folder, options)
        if options.start:
            # Checked before the folder is created, while the user can still choose another address.
            from proofgate.local.folder import require_free_addresses

            require_free_addresses(
                {
                    "--listen": options.listen or QuickstartSetup.listen,
                    "--admin-listen": options.admin_listen or QuickstartSetup.admin_listen,
                }
            )
        setup = _demo(options) if options.demo else _setup(options)
        quickstart.create(folder, setup)
        if options.demo:
            from proofgate.local.folder import QuickstartFolder

            QuickstartFolder(folder).set_simulated_provider_url(setup.base_url)
        if options.start:
            return _start(folder, options)
    except (KeyFileError, QuickstartError) as error:
        return fail(str(error), EXIT_USAGE)
    configuration = shlex.quote(str(folder / quickstart.CONFIGURATION_FILE))
    print(f"created {folder}: a configuration, an empty ledger, and keys that only you can read\n")
    print(f"Start the worker:\n  proofgate serve --config {configuration}\n")
    print(f"Or start it with an auditor and the explorer:\n  {_start_command(folder)}\n")
    print(quickstart.instructions(folder, setup))
    return EXIT_OK


def _start_command(folder: Path) -> str:
    return f"proofgate quickstart --start --directory {shlex.quote(str(folder))}"


def _argument_error(options: argparse.Namespace) -> str | None:
    """Why the arguments contradict each other; None if they do not."""
    if options.demo and not options.start:
        return "--demo needs --start"
    if options.traffic and not options.demo:
        return (
            "--traffic needs --demo: without --demo, a real provider would serve the requests, which "
            "costs money"
        )
    given = {"--base-url": options.base_url, "--key-env": options.key_env, "--model": options.model}
    clash = next((name for name, value in given.items() if value is not None), None)
    if options.demo and clash:
        return f"--demo cannot be combined with {clash}: the simulated provider has its own settings"
    return None


def _require_no_setup_options(folder: Path, options: argparse.Namespace) -> None:
    """Raises QuickstartError for options that have no effect on an existing folder."""
    from proofgate.local.folder import QuickstartFolder

    given = {
        "--base-url": options.base_url,
        "--key-env": options.key_env,
        "--model": options.model,
        "--name": options.name,
        "--listen": options.listen,
        "--admin-listen": options.admin_listen,
    }
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise QuickstartError(
            f"{folder} exists and is started as it is, without {', '.join(names)}: edit "
            f"{folder / quickstart.CONFIGURATION_FILE}, or choose another --directory"
        )
    if options.demo and QuickstartFolder(folder).simulated_provider_url is None:
        raise QuickstartError(
            f"{folder} was created without --demo: start it without --demo, or choose another --directory"
        )


def _setup(options: argparse.Namespace) -> QuickstartSetup:
    """Returns the setup for a provider. Raises KeyFileError, and QuickstartError without the provider's
    key."""
    base_url = options.base_url or OPENAI_URL
    variable = options.key_env or (PROVIDER_KEY_VARIABLE if base_url == OPENAI_URL else None)
    key = os.environ.get(variable) if variable else None
    if variable and not key:
        raise QuickstartError(
            f"the provider's API key is missing: export it as {variable}, or run `proofgate "
            "quickstart --start --demo`: its simulated provider needs no key"
        )
    return QuickstartSetup(
        base_url=base_url,
        provider_key=parse_api_key(key, f"in the variable {variable}") if key else None,
        models=tuple(options.model or QuickstartSetup.models),
        name=options.name or QuickstartSetup.name,
        listen=options.listen or QuickstartSetup.listen,
        admin_listen=options.admin_listen or QuickstartSetup.admin_listen,
    )


def _demo(options: argparse.Namespace) -> QuickstartSetup:
    from proofgate.local.folder import free_address

    return quickstart.demo_setup(
        f"http://{free_address()}/v1",
        options.listen or QuickstartSetup.listen,
        options.admin_listen or QuickstartSetup.admin_listen,
        options.name or QuickstartSetup.name,
    )


def _start(folder: Path, options: argparse.Namespace) -> int:
    from proofgate.local.run import StartOptions
    from proofgate.local.run import run as run_all

    # In an environment that is not active, the command needs its full path.
    installed = shlex.quote(str(Path(sys.executable).with_name("proofgate")))
    command = "proofgate" if shutil.which("proofgate") else installed
    without = tuple(filter(None, (PROVIDER_KEY_VARIABLE, options.key_env)))
    return run_all(folder, StartOptions(options.explorer_listen, options.traffic, command, without))

"""The command `status`: its arguments and its output as text or JSON."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from proofgate import output
from proofgate.exit_codes import EXIT_FAILED, EXIT_OK, EXIT_USAGE, fail

#: Paths of a worker's configuration: in the folder of `quickstart`, or in the current directory.
_CONFIG_PATHS = (Path("proofgate/gateway.yaml"), Path("gateway.yaml"))


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        "With --admin, queries one worker. Otherwise queries the worker of "
        "./proofgate/gateway.yaml (the folder of `proofgate quickstart`) or ./gateway.yaml, or, "
        "if neither file exists, the cluster of kubectl's current context. With --token-file, "
        "also shows how much of its limits each tenant has used. Exit code 0: everything is "
        "ready, 1: something is not ready, 2: nothing could be queried.",
    )
    parser.add_argument(
        "name", metavar="GATEWAY", nargs="?", help="only this gateway (default: all in the namespace)"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "-n", "--namespace", metavar="NAME", help="the namespace (default: the namespace of the context)"
    )
    where.add_argument(
        "-A", "--all-namespaces", action="store_true", help="show the gateways of all namespaces"
    )
    where.add_argument(
        "--admin", metavar="URL", help="query a running worker instead, for example http://127.0.0.1:9090"
    )
    parser.add_argument("--context", metavar="NAME", help="the kubectl context (default: the current one)")
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="with --admin or GATEWAY: the file with the admin token; also show how much of each "
        "limit is used",
    )
    output.add_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Queries and prints the status; the exit code reports whether everything is ready."""
    if options.admin and (options.name or options.context):
        return fail("--admin cannot be combined with GATEWAY or --context", EXIT_USAGE)
    if options.token_file and not (options.admin or options.name):
        return fail("--token-file applies to one gateway: give its name, or --admin", EXIT_USAGE)
    from proofgate.admin_client import AdminError
    from proofgate.status.cluster import ClusterError

    if options.name and options.all_namespaces:
        return fail("GATEWAY is in one namespace: give --namespace instead of --all-namespaces", EXIT_USAGE)
    asked = options.name or options.namespace or options.all_namespaces or options.context
    own = None if asked or options.admin else next((path for path in _CONFIG_PATHS if path.is_file()), None)
    try:
        if own is not None:
            return _local_worker(options, own)
        return _worker(options) if options.admin else _cluster(options)
    except AdminError as error:
        return fail(str(error), EXIT_USAGE)
    except ClusterError as error:
        if asked:
            return fail(str(error), EXIT_USAGE)
        looked = ", ".join(map(str, _CONFIG_PATHS))
        return fail(
            f"{error}\nThe current directory has no {looked} either. Name a worker with --admin "
            "http://127.0.0.1:9090",
            EXIT_USAGE,
        )


def _local_worker(options: argparse.Namespace, path: Path) -> int:
    """Prints the status of the worker whose configuration is in this folder, from its admin port and with its
    token."""
    from proofgate.address import reachable_address
    from proofgate.admin_client import AdminError
    from proofgate.config import InvalidConfigError, load_settings

    try:
        admin = load_settings(path).admin
    except InvalidConfigError as error:
        return fail(f"the configuration is not valid\n{error}", EXIT_USAGE)
    options.admin = f"http://{reachable_address(admin.listen)}"
    if options.token_file is None and admin.token_file is not None:
        options.token_file = path.parent / admin.token_file
    try:
        return _worker(options)
    except AdminError as error:
        start = f"start it with proofgate serve --config {shlex.quote(str(path))}"
        return fail(f"{path}: {error}\nIf the worker does not run, {start}", EXIT_USAGE)


def _cluster(options: argparse.Namespace) -> int:
    from proofgate.status import status_model, text
    from proofgate.status.cluster import gateways
    from proofgate.status.limits import with_limits

    where = [
        *([f"--namespace={options.namespace}"] if options.namespace else []),
        *(["--all-namespaces"] if options.all_namespaces else []),
        *([f"--context={options.context}"] if options.context else []),
    ]
    found = gateways(options.name, where)
    if options.token_file:
        found = [with_limits(gateway, options.token_file, options.context) for gateway in found]
    if output.is_data(options):
        output.show(options, {"gateways": [status_model.as_json(gateway) for gateway in found]})
    else:
        now = datetime.now(UTC)
        sys.stdout.write("\n\n".join(text.format_gateway(gateway, now) for gateway in found))
    return EXIT_OK if all(gateway.is_healthy for gateway in found) else EXIT_FAILED


def _worker(options: argparse.Namespace) -> int:
    from proofgate.status import status_model, text
    from proofgate.status.worker import fetch_worker

    worker = fetch_worker(options.admin, options.token_file)
    if output.is_data(options):
        output.show(options, {"worker": status_model.as_json(worker)})
    else:
        sys.stdout.write(text.format_worker(worker))
    return EXIT_OK if worker.is_healthy else EXIT_FAILED

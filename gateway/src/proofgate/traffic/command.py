"""The command `demo-traffic`: its arguments, its progress, and the summary."""

from __future__ import annotations

import argparse
import secrets
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from proofgate_schema.counts import format_count

from proofgate.exit_codes import EXIT_FAILED, EXIT_OK, EXIT_USAGE, fail

_MAX_REQUESTS = 10_000
_DEFAULT_REQUESTS = 120
#: Number of progress lines.
_STEPS = 4


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        "Sends chats, streams, embeddings and a coding agent's session as each tenant. Also "
        "sends requests with personal data, a secret, an attack, a wrong key and an unknown "
        "model, so that each chart has data.",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path("proofgate"),
        metavar="DIR",
        help="the folder of the quickstart (default: %(default)s)",
    )
    parser.add_argument(
        "--requests",
        type=_count,
        default=_DEFAULT_REQUESTS,
        metavar="N",
        help="the number of requests (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=_seed,
        metavar="N",
        help="send the same requests as another run with this number (default: random)",
    )
    parser.add_argument(
        "--real-provider",
        action="store_true",
        help="also send to a gateway with a real provider; this costs money",
    )


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= _MAX_REQUESTS:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to {_MAX_REQUESTS}")
    return int(text)


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise argparse.ArgumentTypeError("expected a whole number of at most 18 digits")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Sends the requests and prints the results."""
    from proofgate.config import InvalidConfigError, load
    from proofgate.local.folder import QuickstartFolder
    from proofgate.quickstart import CONFIGURATION_FILE, QuickstartError
    from proofgate.traffic.plan import ModelsByKind, plan_requests
    from proofgate.traffic.sending import GatewayUnreachableError, Sender

    folder: Path = options.directory
    try:
        running = QuickstartFolder(folder).read_running()
        if not running.simulated and not options.real_provider:
            return fail(
                f"{folder} has a real provider, which would receive "
                f"{format_count(options.requests, 'request')}: --real-provider allows this",
                EXIT_USAGE,
            )
        settings = load(folder / CONFIGURATION_FILE).settings
        keys = _keys(folder, [tenant.name for tenant in settings.tenants])
    except InvalidConfigError as error:
        return fail(f"the configuration is not valid\n{error}", EXIT_USAGE)
    except (QuickstartError, OSError) as error:
        return fail(str(error), EXIT_USAGE)
    models = ModelsByKind.from_names([model.name for model in settings.models])
    if not keys or not models.chat:
        return fail(
            f"{folder} has no tenant with a key file, or no model for chats: demo-traffic needs both",
            EXIT_USAGE,
        )
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    requests = plan_requests(options.requests, seed, sorted(keys), models)
    sender, began = Sender(running.gateway, keys), time.monotonic()
    try:
        for number, request in enumerate(requests, 1):
            sender.send(request)
            if number * _STEPS // len(requests) > (number - 1) * _STEPS // len(requests):
                print(f"{number} of {len(requests)} requests sent", flush=True)
    except GatewayUnreachableError as error:
        return fail(str(error), EXIT_FAILED)
    seconds = time.monotonic() - began
    print(f"sent in {seconds:.1f} s (--seed {seed}): {_format_counts(sender.counts.by_kind)}")
    print(f"outcomes: {_format_counts(sender.counts.by_outcome)}")
    return EXIT_OK


def _keys(folder: Path, tenants: list[str]) -> dict[str, str]:
    """Reads the API keys of the tenants with a key file in the folder. Raises OSError."""
    from proofgate.quickstart import tenant_key_file

    paths = {tenant: folder / tenant_key_file(tenant) for tenant in tenants}
    return {
        tenant: path.read_text(encoding="ascii").strip() for tenant, path in paths.items() if path.is_file()
    }


def _format_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())

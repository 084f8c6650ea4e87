"""The command `witness`: its arguments, and the service."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

from proofgate import _core, logs
from proofgate.argument_types import parse_address
from proofgate.exit_codes import EXIT_FAILED, EXIT_USAGE, fail
from proofgate.keys import warn_if_exposed


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        "Serves c2sp.org/tlog-witness. Cosignatures show that an auditor, or another log, has one history.",
    )
    parser.add_argument(
        "--logs", type=Path, required=True, metavar="FILE", help="the logs to cosign, a c2sp.org/tlog-list"
    )
    parser.add_argument(
        "--signing-key",
        type=Path,
        required=True,
        metavar="FILE",
        help="the witness's signing key, created by `keys generate --witness`",
    )
    parser.add_argument(
        "--state",
        type=Path,
        required=True,
        metavar="DIR",
        help="the directory with the last cosigned checkpoint of each log; never lose it or restore "
        "an older copy",
    )
    parser.add_argument(
        "--new-state",
        action="store_true",
        help="start with an empty --state; use this on the first start with a key",
    )
    parser.add_argument(
        "--listen",
        type=parse_address,
        default="127.0.0.1:9092",
        metavar="ADDRESS",
        help="the address to listen on (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Serves the witness until a signal."""
    from proofgate.http_server import ListenError, bind
    from proofgate.witness import service

    logs.configure("witness")
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    warn_if_exposed(options.signing_key)
    try:
        witness = _core.Witness(
            str(options.state),
            options.signing_key.read_text(encoding="ascii"),
            options.logs.read_text(encoding="utf-8"),
            options.new_state,
        )
    except OSError as error:
        return fail(f"{error.filename} cannot be read: {error.strerror}", EXIT_USAGE)
    except UnicodeDecodeError:
        return fail("--signing-key or --logs is not text", EXIT_USAGE)
    except ValueError as error:
        # The error does not contain the text of a key.
        return fail(f"--signing-key: {error}", EXIT_USAGE)
    except _core.WitnessError as error:
        code = EXIT_USAGE if error.code == "witness_log_list" else EXIT_FAILED
        return fail(f"{error} [{error.code}]", code)
    try:
        listener = bind(options.listen)
    except ListenError as error:
        return fail(f"{error} [{error.code}]", EXIT_FAILED)
    with listener:
        service.run(witness, listener)
    return 0

"""The arguments of `serve` and `validate`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from proofgate import commands as handlers
from proofgate import output
from proofgate.argument_types import parse_number_in_range

_Describe = Callable[..., argparse.ArgumentParser]


def serve(command: _Describe) -> None:
    """Describes `serve`."""
    parser = command(
        handlers.serve,
        "SIGTERM or SIGINT drains the worker and seals its log. A second signal stops the worker "
        "at once. SIGHUP reloads the configuration. A change to the file, or to a file that it "
        "names, also reloads the configuration.",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the worker's YAML file")
    parser.add_argument(
        "--accepted",
        type=Path,
        default=os.environ.get("PROOFGATE_ACCEPTED_CONFIG") or None,
        metavar="FILE",
        help="the configuration that was accepted last; the worker starts with it if --config is "
        "refused (default: $PROOFGATE_ACCEPTED_CONFIG)",
    )
    parser.add_argument(
        "--shard",
        type=_shard,
        # argparse checks a default value of type str like an argument.
        default=os.environ.get("PROOFGATE_SHARD") or "0",
        metavar="N",
        help="this worker's stable number (default: $PROOFGATE_SHARD, or 0)",
    )


def validate(command: _Describe) -> None:
    """Describes `validate`."""
    parser = command(
        handlers.validate,
        "Compiles the rules and reports each problem with its line. Exit code 2 if there is a problem.",
    )
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("path", type=Path, nargs="?", metavar="CONFIG", help="the worker's YAML file")
    given.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="the worker's YAML file, as an option instead of an argument",
    )
    output.add_argument(parser, "--format")


def _shard(text: str) -> int:
    return int(parse_number_in_range(text, 0, 65_535, whole=True))

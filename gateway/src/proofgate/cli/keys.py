"""The arguments of `keys generate` and `keys hash`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from proofgate import commands as handlers

_Describe = Callable[..., argparse.ArgumentParser]


def generate(command: _Describe) -> None:
    """Describes `generate`."""
    parser = command(
        handlers.keygen,
        "Writes signing-key (mode 0600) and verifying-key. Never overwrites a file.",
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        help="the name of the key, for example the ledger's name proofgate.example.com/team",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the output directory (default: the current one)",
    )
    parser.add_argument(
        "--witness",
        action="store_true",
        help="create a key for a witness, which cosigns (c2sp.org/tlog-cosignature)",
    )


def hash_key(command: _Describe) -> None:
    """Describes `hash`."""
    command(
        handlers.hash_key,
        "The key is not an argument, because other processes can see arguments.",
    )

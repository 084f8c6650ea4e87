"""Types of arguments that several commands take: each reads a text, and says what it expected instead."""

from __future__ import annotations

import argparse


def parse_number_in_range(text: str, minimum: float, maximum: float, *, whole: bool) -> float:
    """A number in a range. Raises ArgumentTypeError."""
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        number = float("nan")
    if not minimum <= number <= maximum:
        kind = "a whole number" if whole else "a number"
        raise argparse.ArgumentTypeError(f"expected {kind} from {minimum} to {maximum}")
    return number


def parse_address(text: str) -> str:
    """An address and a port. Raises ArgumentTypeError."""
    from proofgate.address import split_address

    try:
        split_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text

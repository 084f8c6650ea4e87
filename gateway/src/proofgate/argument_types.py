"""Argument types that several commands use. Each parses a text, and its error says what it expected."""

from __future__ import annotations

import argparse


def parse_number_in_range(text: str, minimum: float, maximum: float, *, whole: bool) -> float:
    """Parses a number in a range. Raises ArgumentTypeError."""
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        number = float("nan")
    if not minimum <= number <= maximum:
        kind = "a whole number" if whole else "a number"
        raise argparse.ArgumentTypeError(f"expected {kind} from {minimum} to {maximum}")
    return number


def parse_address(text: str) -> str:
    """Checks that a text is an address and a port. Raises ArgumentTypeError."""
    from proofgate.address import split_address

    try:
        split_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text

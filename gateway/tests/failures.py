"""Errors in the form in which the core raises them."""

from __future__ import annotations

from proofgate import _core


def failure(kind: type[_core.ProofgateError], message: str, code: str) -> _core.ProofgateError:
    """Returns an error of this class with its stable code."""
    error = kind(message)
    error.code = code
    return error

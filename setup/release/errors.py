"""Errors of a release."""

from __future__ import annotations


class ReleaseError(Exception):
    """A release cannot be built or published. The message says what to do next."""

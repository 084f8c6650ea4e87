"""Which refusals are a rule's: an officer counts them apart from limits, keys and errors in requests."""

from __future__ import annotations

from proofgate import _core
from proofgate.index.schema import DENIED, REFUSED

_CODES = frozenset(_core.denial_codes())


def is_denial(code: str | None) -> bool:
    """Whether a rule, an external policy or the check of guarded tools denied a request, by the code of its
    refusal. A policy that fails denies as well."""
    return code in _CODES


def effective_verdict(verdict: int, code: str | None) -> int:
    """The verdict of an exchange: of a refusal, by its code; any other stays."""
    return DENIED if verdict == REFUSED and is_denial(code) else verdict

"""Classification of refusals: those by rules count separately from limits, invalid keys and errors in
requests."""

from __future__ import annotations

from proofgate import _core
from proofgate.index.schema import DENIED, REFUSED

_CODES = frozenset(_core.denial_codes())


def is_denial(code: str | None) -> bool:
    """Whether a rule, an external policy or the check of guarded tools denied a request, by the code of its
    refusal. A policy that fails also denies."""
    return code in _CODES


def effective_verdict(verdict: int, code: str | None) -> int:
    """Returns the verdict of an exchange: for a refusal by a rule from its code, otherwise `verdict`."""
    return DENIED if verdict == REFUSED and is_denial(code) else verdict

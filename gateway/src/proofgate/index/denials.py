"""Which refusals are a rule's: an officer counts them apart from limits, keys and errors in requests."""

from __future__ import annotations

from proofgate.index.schema import DENIED, REFUSED

_GUARDED = frozenset({"guarded_tool_refused", "approval_required"})


def is_denial(code: str | None) -> bool:
    """Whether a rule, an external policy or the check of guarded tools denied a request, by the code of its
    refusal. A policy that fails denies as well, as in the core (`Rejection::is_denial`)."""
    return code is not None and (code.startswith("policy_") or code in _GUARDED)


def verdict_of(verdict: int, code: str | None) -> int:
    """The verdict of an exchange: of a refusal, by its code; any other stays."""
    return DENIED if verdict == REFUSED and is_denial(code) else verdict

"""Which refusals are a rule's: an officer counts them apart from limits, keys and errors in requests."""

from __future__ import annotations

from proofgate.index.schema import DENIED, REFUSED

#: The codes (docs/reference/errors.md) by which rules and policies deny a request.
DENIALS = frozenset(
    {
        "policy_blocked",
        "policy_redaction_impossible",
        "policy_unavailable",
        "guarded_tool_refused",
        "approval_required",
    }
)


def verdict_of(verdict: int, code: str | None) -> int:
    """The verdict of an exchange: of a refusal, by its code; any other stays."""
    return DENIED if verdict == REFUSED and code in DENIALS else verdict

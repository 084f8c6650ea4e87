"""Converts verdicts to the core's format, and detects invalid ones."""

from __future__ import annotations

from collections.abc import Sequence

from proofgate.policy.interface import Allow, Deny, Flag, Replace

#: A verdict for the core: kind, rule or code, reason, score, and replacements.
CoreVerdict = tuple[str, str, str, int, list[tuple[int, int, int, str]]]


def failed_verdict(reason: str) -> CoreVerdict:
    """Returns a failed verdict with a reason of the core: exception, bad_verdict or not_loaded."""
    return ("failed", reason, "", 0, [])


def core_verdict(verdict: object) -> CoreVerdict:
    """Converts a verdict for the core, which also checks the types and values in it."""
    match verdict:
        case Allow():
            return ("allow", "", "", 0, [])
        case Deny(code, reason):
            return ("deny", code, reason, 0, [])
        case Flag(rule, score):
            return ("flag", rule, "", score, [])
        case Replace(rule, Sequence() as replacements, reversible):
            try:
                parts = [(part.text, part.start, part.end, part.by) for part in replacements]
            except AttributeError:
                return failed_verdict("bad_verdict")
            return ("replace_reversibly" if reversible else "replace", rule, "", 0, parts)
    return failed_verdict("bad_verdict")


def core_verdicts(verdicts: object, count: int) -> list[CoreVerdict]:
    """Converts what a policy returned for `count` requests. A result with another number of verdicts is
    invalid as a whole."""
    if not isinstance(verdicts, Sequence) or len(verdicts) != count:
        return [failed_verdict("bad_verdict")] * count
    return [core_verdict(verdict) for verdict in verdicts]

"""Verdicts in the form in which they cross to the core, and what is none."""

from __future__ import annotations

from collections.abc import Sequence

from proofgate.policy.interface import Allow, Deny, Flag, Replace

#: The verdict, its rule or code, its reason, its score, and its replacements.
CoreVerdict = tuple[str, str, str, int, list[tuple[int, int, int, str]]]


def failed_verdict(reason: str) -> CoreVerdict:
    """No verdict, for a reason that the core knows: exception, bad_verdict or not_loaded."""
    return ("failed", reason, "", 0, [])


def core_verdict(verdict: object) -> CoreVerdict:
    """A verdict for the core, which also looks at the types and words in it."""
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
    """What a policy returned for so many requests; anything but as many verdicts is none."""
    if not isinstance(verdicts, Sequence) or len(verdicts) != count:
        return [failed_verdict("bad_verdict")] * count
    return [core_verdict(verdict) for verdict in verdicts]

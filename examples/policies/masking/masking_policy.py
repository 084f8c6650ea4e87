"""Masks personal data in prompts: the provider sees `[EMAIL_1]` where the client wrote an address.

Within one request, the same value always gets the same mask, so a model can still distinguish two people. In a
response, streamed or not, the gateway restores the values for the client.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from proofgate.policy import Allow, Policy, PolicyRequest, Replace, Replacement, Verdict

#: The pattern of each kind of data, by the word in its mask. No two adjacent quantifiers are unbounded.
PATTERNS = {
    "EMAIL": r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}",
    "IBAN": r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b",
    "PHONE": r"(?<![\w+])\+[0-9]{1,3}(?:[ /.-]?[0-9]{2,5}){2,5}\b",
}

#: The maximum number of different values that the gateway restores in one response.
MOST_PUT_BACK = 256


class Masking:
    """Replaces every text that matches one of the kinds."""

    def __init__(self, kinds: Sequence[str]) -> None:
        unknown = set(kinds) - PATTERNS.keys()
        if unknown:
            raise ValueError(f"there is no kind {', '.join(sorted(unknown))}")
        self._pattern = re.compile("|".join(f"(?P<{kind}>{PATTERNS[kind]})" for kind in kinds))

    @property
    def name(self) -> str:
        return "masking"

    def evaluate(self, batch: Sequence[PolicyRequest]) -> Sequence[Verdict]:
        return [self._masked(request) for request in batch]

    def _masked(self, request: PolicyRequest) -> Verdict:
        masks: dict[tuple[str, str], str] = {}
        counts: dict[str, int] = {}
        replacements = []
        for number, text in enumerate(request.texts):
            for match in self._pattern.finditer(text.text):
                kind = match.lastgroup or ""
                known = (kind, match[0])
                if known not in masks:
                    counts[kind] = counts.get(kind, 0) + 1
                    masks[known] = f"[{kind}_{counts[kind]}]"
                replacements.append(Replacement(number, match.start(), match.end(), masks[known]))
        if not replacements:
            return Allow()
        # With more values than the gateway restores, the masks stay permanently.
        return Replace("personal-data", replacements, reversible=len(masks) <= MOST_PUT_BACK)


def policy(kinds: Sequence[str] = tuple(PATTERNS)) -> Policy:
    """The factory: `masking.masking_policy:policy`, `parameters: {kinds: [EMAIL, IBAN]}`."""
    return Masking(kinds)

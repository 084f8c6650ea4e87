"""A template for policies: it denies requests with a text that is too long."""

from __future__ import annotations

from collections.abc import Sequence

from proofgate.policy import Allow, Deny, Policy, PolicyRequest, Verdict


class TemplatePolicy:
    """The parts of a policy. Only one thread calls a policy, so it may keep state in its attributes."""

    def __init__(self, longest: int) -> None:
        self._longest = longest

    @property
    def name(self) -> str:
        return "template"

    def start(self) -> None:
        """Do slow work here: read a model, open a connection. Optional."""

    def close(self) -> None:
        """Release what `start` opened. Optional."""

    def evaluate(self, batch: Sequence[PolicyRequest]) -> Sequence[Verdict]:
        """Return one verdict for each request, in the same order."""
        return [self._verdict(request) for request in batch]

    def _verdict(self, request: PolicyRequest) -> Verdict:
        if any(len(text.text) > self._longest for text in request.texts):
            return Deny("too-long", f"No text may have more than {self._longest} characters.")
        return Allow()


def policy(longest: int = 20_000) -> Policy:
    """The factory: `template.template_policy:policy`. Its arguments are the configuration's `parameters`."""
    return TemplatePolicy(longest)

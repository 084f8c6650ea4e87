"""A policy to begin with: it denies requests with a text that is longer than it may be."""

from __future__ import annotations

from collections.abc import Sequence

from proofgate.policy import Allow, Deny, Policy, PolicyRequest, Verdict


class TemplatePolicy:
    """What a policy consists of. One thread calls it, so it may keep what it likes on itself."""

    def __init__(self, longest: int) -> None:
        self._longest = longest

    @property
    def name(self) -> str:
        return "template"

    def start(self) -> None:
        """Whatever takes long: read a model, open a connection. Leave it out if there is nothing."""

    def close(self) -> None:
        """The counterpart of `start`."""

    def evaluate(self, batch: Sequence[PolicyRequest]) -> Sequence[Verdict]:
        """One verdict for each request, in their order."""
        return [self._verdict(request) for request in batch]

    def _verdict(self, request: PolicyRequest) -> Verdict:
        if any(len(text.text) > self._longest for text in request.texts):
            return Deny("too-long", f"No text may have more than {self._longest} characters.")
        return Allow()


def policy(longest: int = 20_000) -> Policy:
    """What the configuration names: `factory: template.template_policy:policy`. Its parameters are arguments here."""
    return TemplatePolicy(longest)

"""Evaluation of a policy on the examples of rules, on samples from a file, or on one text.

Tests always evaluate the policy as if it were enforced. A policy may be written in `DryRun` and enforced
later, and its tests should not change then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from proofgate_schema.fields import TupleOf
from proofgate_schema.policy import Policy, Rule, Scope
from proofgate_schema.section import Section
from pydantic import AfterValidator, ValidationError

from proofgate import _core
from proofgate.config import InvalidConfigError, Problem
from proofgate.config.document import DocumentError, parse_list
from proofgate.config.files import MAX_CONFIG_BYTES, read_bounded
from proofgate.config.policy_rules import rules_of
from proofgate.config.problems import Findings, report_schema_problems
from proofgate.config.references import unknown_name_message
from proofgate.config.settings import Settings


def _not_blank(text: str) -> str:
    if not text:
        raise ValueError("write a text to evaluate")
    return text


class Sample(Section):
    """A text and the expected verdict of the policy."""

    text: Annotated[str, AfterValidator(_not_blank)]
    """The text that the policy evaluates."""
    direction: Literal["request", "response"] = "request"
    """`request`: the text is a prompt. `response`: the text is an answer."""
    scope: Scope | None = None
    """The role of the text in a conversation. Absent: a user's message for `request`, an answer for `response`."""
    tenant: str | None = None
    """The tenant whose policy applies. Absent: the gateway's policy."""
    expect: Literal["allow", "flag", "mask", "redact", "block"] | None = None
    """The expected decision. Absent: any decision."""
    rules: TupleOf[str] = ()
    """Rules that must match. Other rules may match, too."""


@dataclass(frozen=True)
class RuleMatch:
    """A match of a rule: its position in bytes of UTF-8, and the rule's action."""

    rule: str
    action: str
    start: int
    end: int

    def excerpt(self, text: str) -> str:
        """Returns the text that the rule matched."""
        return text.encode()[self.start : self.end].decode(errors="replace")


@dataclass(frozen=True)
class Verdict:
    """A policy's decision about one text. `rule` is the rule that blocks, or the strongest of the rules whose
    total score blocks; None if nothing blocks."""

    decision: str
    would_block: bool
    rule: str | None
    by_score: bool
    score: int
    flagged: bool
    matches: tuple[RuleMatch, ...]


@dataclass(frozen=True)
class SampleFailure:
    """A text with another verdict than expected."""

    location: str
    text: str
    expected: str
    verdict: Verdict


def evaluate_text(
    policy: dict[str, Any], tenant: dict[str, Any] | None, direction: str, text: str, scope: str | None = None
) -> Verdict:
    """Evaluates one text. `policy` and `tenant` are sections as in the configuration file. Raises the core's
    ConfigError.

    Without a scope, the text is a user's message or a response, according to `direction`.
    """
    tenant_json = None if tenant is None else json.dumps(tenant)
    where = scope or ("Answer" if direction == "response" else "User")
    answer = json.loads(_core.policy_scan(json.dumps(policy), tenant_json, direction, where, text))
    matches = tuple(
        RuleMatch(found["rule"], found["action"], found["start"], found["end"]) for found in answer["matches"]
    )
    names = ("decision", "would_block", "rule", "by_score", "score", "flagged")
    return Verdict(**{name: answer[name] for name in names}, matches=matches)


def evaluate_configured_policy(
    settings: Settings, tenant: str | None, direction: str, text: str, scope: str | None = None
) -> Verdict:
    """Evaluates one text with the configured policy and mode. Raises the core's ConfigError."""
    tenant_document = _tenant_document(settings, tenant)
    return evaluate_text(settings.policy.to_document(), tenant_document, direction, text, scope)


def evaluate_request(settings: Settings, tenant: str | None, endpoint: str, body: bytes) -> dict[str, Any]:
    """Evaluates a request, with the result of `_core.policy_check`. Raises the core's ConfigError."""
    tenant_document = _tenant_document(settings, tenant)
    tenant_json = None if tenant_document is None else json.dumps(tenant_document)
    policy = json.dumps(settings.policy.to_document())
    checked: dict[str, Any] = json.loads(_core.policy_check(policy, tenant_json, endpoint, body))
    return checked


def example_failures(policy: Policy) -> Iterator[SampleFailure]:
    """Yields the failing examples of rules, each rule evaluated separately."""
    for rule in policy.rules:
        for texts, wanted in ((rule.examples.match, True), (rule.examples.no_match, False)):
            for text in texts:
                verdict = _single_rule_verdict(rule, text)
                if (rule.id in _matched_rules(verdict)) is not wanted:
                    yield SampleFailure(f"rule {rule.id}", text, "match" if wanted else "no match", verdict)


def sample_failures(settings: Settings, samples: dict[str, Sample]) -> Iterator[SampleFailure]:
    """Yields the samples whose verdict is not as expected, with their location."""
    enforced = settings.policy.to_document() | {"mode": "Enforce"}
    for where, sample in samples.items():
        tenant = _tenant_document(settings, sample.tenant)
        if tenant is not None:
            tenant.pop("mode", None)
        verdict = evaluate_text(enforced, tenant, sample.direction, sample.text, sample.scope)
        missing = [rule for rule in sample.rules if rule not in _matched_rules(verdict)]
        if missing or sample.expect not in (None, verdict.decision):
            expected = ", ".join([sample.expect or "any", *sample.rules])
            yield SampleFailure(where, sample.text, expected, verdict)


def read_samples(path: Path, settings: Settings) -> dict[str, Sample]:
    """Reads the samples in a YAML file, by location `file:line`. Raises InvalidConfigError."""
    try:
        document = parse_list(read_bounded(path, MAX_CONFIG_BYTES).decode())
    except OSError as error:
        raise _samples_error(path, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _samples_error(path, "is not UTF-8 text") from None
    except DocumentError as error:
        raise _samples_error(path, str(error), error.line) from None
    findings = Findings(document)
    samples = {}
    known = {str(rule["id"]) for rule in rules_of(settings.policy, actions=[])}
    for position, entry in enumerate(document.data):
        try:
            samples[f"{path}:{document.line_of((position,))}"] = sample = Sample.model_validate(entry)
        except ValidationError as error:
            report_schema_problems(error, Sample, findings, (position,))
        else:
            _check_sample(sample, position, settings, known, findings)
    if findings.problems:
        raise InvalidConfigError(path, findings.problems)
    return samples


def _check_sample(
    sample: Sample, position: int, settings: Settings, known: set[str], findings: Findings
) -> None:
    tenants = [tenant.name for tenant in settings.tenants]
    if sample.tenant is not None and sample.tenant not in tenants:
        message = unknown_name_message("tenant", sample.tenant, tenants, "define it in the configuration")
        findings.report("config_unknown_tenant", (position, "tenant"), message)
    for place, rule in enumerate(sample.rules):
        if rule not in known:
            message = unknown_name_message("rule", rule, known, "list them with proofgate policy rules")
            findings.report("config_unknown_rule", (position, "rules", place), message)
    if sample.expect is None and not sample.rules:
        message = "the sample expects nothing: set expect or rules"
        findings.report("config_missing_field", (position,), message)


def _samples_error(path: Path, message: str, line: int | None = None) -> InvalidConfigError:
    return InvalidConfigError(path, [Problem("samples_unreadable", (), message, line)])


def _single_rule_verdict(rule: Rule, text: str) -> Verdict:
    policy = Policy(rules=(rule,)).to_document()
    return evaluate_text(policy, None, "response" if rule.target == "Response" else "request", text)


def _matched_rules(verdict: Verdict) -> set[str]:
    return {match.rule for match in verdict.matches}


def _tenant_document(settings: Settings, name: str | None) -> dict[str, Any] | None:
    found = next((tenant for tenant in settings.tenants if tenant.name == name), None)
    return found.policy.to_document() if found and found.policy else None

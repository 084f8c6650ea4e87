"""`proofgate policy`: tests and lists rules, and evaluates a text or a request."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from proofgate_schema.counts import format_count
from proofgate_schema.policy import Scope
from pydantic.alias_generators import to_snake

from proofgate import _core, output
from proofgate.config import InvalidConfigError, load_settings
from proofgate.config.policy_rules import rules_of
from proofgate.config.references import unknown_name_message
from proofgate.config.settings import Settings
from proofgate.exit_codes import EXIT_FAILED, EXIT_OK, EXIT_USAGE, fail
from proofgate.policy_samples import (
    SampleFailure,
    Verdict,
    evaluate_configured_policy,
    evaluate_request,
    example_failures,
    read_samples,
    sample_failures,
)

_MAX_EXCERPT_LENGTH = 48


def test(options: argparse.Namespace) -> int:
    """Tests the examples of the configuration's own rules, and samples. Returns 1 if one fails."""
    try:
        settings = load_settings(options.config)
        samples = read_samples(options.samples, settings) if options.samples else {}
    except InvalidConfigError as error:
        return _report_refusal(error)
    failures = [*example_failures(settings.policy), *sample_failures(settings, samples)]
    rules = settings.policy.rules
    examples = sum(len(rule.examples.match) + len(rule.examples.no_match) for rule in rules)
    tested_examples = f"{format_count(examples, 'example')} of {format_count(len(rules), 'rule')}"
    tried = f"{tested_examples}, {format_count(len(samples), 'sample')}"
    if output.is_data(options):
        counts = {"examples": examples, "rules": len(rules), "samples": len(samples)}
        shown = [_failure_document(failure) for failure in failures]
        output.show(options, {"passed": not failures, **counts, "failures": shown})
        return EXIT_FAILED if failures else EXIT_OK
    if failures:
        print(output.table([("where", "text", "expected", "got", "matched"), *map(_failure_row, failures)]))
        return fail(f"{len(failures)} failed: {tried}", EXIT_FAILED)
    print(f"passed: {tried}")
    return EXIT_OK


def rules(options: argparse.Namespace) -> int:
    """Lists the rules that are in force."""
    try:
        settings = load_settings(options.config)
    except InvalidConfigError as error:
        return _report_refusal(error)
    policy = settings.policy
    if options.pack is not None and options.pack not in policy.packs:
        return fail(
            unknown_name_message("pack", options.pack, policy.packs, "list it under policy.packs"), EXIT_USAGE
        )
    listed = [
        rule for rule in rules_of(policy, actions=[]) if options.pack is None or rule["pack"] == options.pack
    ]
    in_force = {str(rule["id"]) for rule in rules_of(policy)}
    off = [str(rule["id"]) for rule in listed if rule["id"] not in in_force]
    active = [rule for rule in rules_of(policy) if options.pack is None or rule["pack"] == options.pack]
    own = {rule.id for rule in policy.rules}
    if output.is_data(options):
        names = ("id", "pack", "target", "view", "score", "actions", "reason")
        listed_rules = [{name: rule[name] for name in names} for rule in active]
        document = {"mode": policy.mode, "threshold": policy.threshold, "rules": listed_rules, "off": off}
        output.show(options, document)
        return EXIT_OK
    print(
        output.table(
            [
                ("id", "pack", "target", "view", "score", "action", "reason"),
                *_rule_rows(active, own),
            ]
        )
    )
    print(
        f"{format_count(len(active), 'rule')}, {policy.mode}, threshold {policy.threshold or 'none'}"
        + (f"; off: {', '.join(off)}" if off else "")
    )
    return EXIT_OK


def check(options: argparse.Namespace) -> int:
    """Evaluates one text with the policy and prints the verdict."""
    try:
        settings = load_settings(options.config)
    except InvalidConfigError as error:
        return _report_refusal(error)
    tenants = {tenant.name: tenant for tenant in settings.tenants}
    if options.tenant is not None and options.tenant not in tenants:
        return fail(
            unknown_name_message("tenant", options.tenant, tenants, "define it under tenants"), EXIT_USAGE
        )
    for line in _unenforced_reasons(settings, options.tenant):
        print(f"proofgate: warning: {line}", file=sys.stderr)
    if options.request is not None:
        return _check_request(options, settings)
    try:
        text = sys.stdin.buffer.read().decode() if options.text == "-" else options.text
        text.encode()
    except UnicodeError:
        return fail("the text is not UTF-8", EXIT_USAGE)
    try:
        verdict = evaluate_configured_policy(settings, options.tenant, options.direction, text, options.scope)
    except _core.ConfigError as error:
        return fail(str(error), EXIT_USAGE)
    override = tenants[options.tenant].policy if options.tenant else None
    threshold = (override and override.threshold) or settings.policy.threshold
    if output.is_data(options):
        output.show(options, _verdict_document(verdict, threshold, text))
        return EXIT_OK
    bound = f" of {threshold}" if threshold else ""
    print(f"decision: {_decision(verdict)}\nscore: {verdict.score}{bound}{_flagged(verdict.flagged)}")
    print("matches:" if verdict.matches else "matches: none")
    if verdict.matches:
        spans = [
            (
                f"  {match.rule}",
                match.action,
                f"bytes {match.start}-{match.end}",
                _quote(match.excerpt(text)),
            )
            for match in verdict.matches
        ]
        print(output.table(spans))
    return EXIT_OK


def _check_request(options: argparse.Namespace, settings: Settings) -> int:
    """Evaluates a request with the policy, and prints the verdict on each message."""
    try:
        body = sys.stdin.buffer.read() if options.request == "-" else Path(options.request).read_bytes()
    except OSError as error:
        return fail(f"{options.request}: cannot be read: {error.strerror}", EXIT_USAGE)
    try:
        checked = evaluate_request(settings, options.tenant, options.endpoint, body)
    except _core.ConfigError as error:
        return fail(str(error), EXIT_USAGE)
    if output.is_data(options):
        output.show(options, checked)
        return EXIT_OK
    rule = f" by {checked['rule']}" if checked["rule"] and not checked["by_score"] else ""
    cause = " by score" if checked["by_score"] else rule
    would = " (dry-run: would block)" if checked["would_block"] and checked["decision"] != "block" else ""
    place = f" in {checked['message']} ({checked['scope']})" if checked["message"] else ""
    print(f"decision: {checked['decision']}{cause}{place}{would}")
    print("messages:" if checked["messages"] else "messages: nothing matched")
    for message in checked["messages"]:
        origin = " as instructions from a tool" if message["from_tool"] else ""
        score = f"score {message['score']}{_flagged(message['flagged'])}{origin}"
        print(f"  {message['place']} ({message['scope']}): {message['decision']}, {score}")
        rows = [
            (f"    {match['rule']}", match["action"], _quote(match.get("text") or ""))
            for match in message["matches"]
        ]
        print(output.table(rows))
    if checked["sent"] is not None:
        print(f"sent instead: {checked['sent']}")
    from_tools = [message["place"] for message in checked["messages"] if message["from_tool"]]
    if from_tools and checked["decision"] != "block":
        print(_guarded_calls(settings, options.tenant, from_tools[0]), end="")
    return EXIT_OK


def _guarded_calls(settings: Settings, name: str | None, place: str) -> str:
    """The decision on calls in the response, from the tenant's plan or own settings; empty if none."""
    tenant = next((tenant for tenant in settings.tenants if tenant.name == name), None)
    plan = next((plan for plan in settings.plans if tenant and plan.name == tenant.plan), None)
    terms = plan or tenant
    if terms is None or terms.guarded_tools is None:
        return ""
    mode = (terms.policy and terms.policy.mode) or settings.policy.mode
    is_refused = terms.guarded_tools.on_flag == "Refuse"
    if mode == "DryRun":
        verdict = "would be refused" if is_refused else "would need an approval"
    else:
        verdict = "are refused" if is_refused else "need an approval"
    names = ", ".join(terms.guarded_tools.names)
    return f"calls in the answer that {verdict} after {place}: {names}\n"


def _unenforced_reasons(settings: Settings, name: str | None) -> list[str]:
    """Reasons why the policy changes no traffic, such as no rules or a dry run."""
    policy = settings.policy
    tenant = next((tenant for tenant in settings.tenants if tenant.name == name), None)
    plan = next((plan for plan in settings.plans if tenant and plan.name == tenant.plan), None)
    terms = plan or tenant
    own = terms.policy if terms is not None else None
    lines = []
    if not rules_of(policy):
        lines.append("no rules are in force: add packs to policy.packs, or rules to policy.rules")
    if ((own and own.mode) or policy.mode) == "DryRun":
        lines.append("the policy is a dry run (policy.mode): decisions are recorded, and not enforced")
    return lines


def _flagged(is_flagged: bool) -> str:
    return ", flagged" if is_flagged else ""


def _report_refusal(error: InvalidConfigError) -> int:
    return fail(f"the configuration is not valid\n{error}", EXIT_USAGE)


def _decision(verdict: Verdict) -> str:
    causes = []
    if verdict.by_score:
        causes.append("by score")
    elif verdict.rule is not None:
        causes.append(f"by {verdict.rule}")
    if verdict.would_block and verdict.decision != "block":
        causes.append("dry-run: would block")
    return f"{verdict.decision} ({', '.join(causes)})" if causes else verdict.decision


def _verdict_document(verdict: Verdict, threshold: int | None, text: str) -> dict[str, Any]:
    matches = [
        {
            "rule": match.rule,
            "action": match.action,
            "start": match.start,
            "end": match.end,
            "text": match.excerpt(text),
        }
        for match in verdict.matches
    ]
    names = ("decision", "rule", "by_score", "would_block", "score", "flagged")
    decided = {name: getattr(verdict, name) for name in names}
    return {**decided, **({"threshold": threshold} if threshold else {}), "matches": matches}


def _failure_document(failure: SampleFailure) -> dict[str, Any]:
    got = _verdict_document(failure.verdict, None, failure.text)
    return {"where": failure.location, "text": failure.text, "expected": failure.expected, "got": got}


def _failure_row(failure: SampleFailure) -> Sequence[str]:
    verdict = failure.verdict
    matched = [f"{match.rule} {_quote(match.excerpt(failure.text))}" for match in verdict.matches]
    return (
        failure.location,
        _quote(failure.text),
        failure.expected,
        _decision(verdict),
        ", ".join(matched) or "nothing",
    )


def _rule_rows(rules: Iterable[dict[str, Any]], own: set[str]) -> Iterable[Sequence[str]]:
    for rule in rules:
        pack = "-" if rule["id"] in own else rule["pack"]
        action = _format_scoped_actions(rule["actions"])
        yield (rule["id"], pack, rule["target"], rule["view"], str(rule["score"]), action, rule["reason"])


def _format_scoped_actions(actions: Mapping[str, str]) -> str:
    """Formats the action of a rule in most scopes, with exceptions in brackets."""
    scopes = {scope: actions[to_snake(scope)] for scope in get_args(Scope) if to_snake(scope) in actions}
    usual, _ = Counter(scopes.values()).most_common(1)[0]
    others: dict[str, list[str]] = {}
    for scope, action in scopes.items():
        if action != usual:
            others.setdefault(action, []).append(scope)
    exceptions = "; ".join(f"{', '.join(where)}: {action}" for action, where in others.items())
    return f"{usual} ({exceptions})" if exceptions else usual


def _quote(text: str) -> str:
    """Quotes the start of a text, with control characters escaped."""
    short = text if len(text) <= _MAX_EXCERPT_LENGTH else f"{text[:_MAX_EXCERPT_LENGTH]}…"
    return json.dumps(short, ensure_ascii=not short.isprintable())

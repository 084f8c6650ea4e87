"""`proofgate policy`: testing rules, listing them, and asking what they make of a text."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from proofgate.commands import EXIT_FAILED, EXIT_OK, EXIT_USAGE, fail
from proofgate.config import InvalidConfigError, load_settings
from proofgate.config.core_json import policy_document
from proofgate.config.policy_rules import rules_of
from proofgate.config.references import unknown
from proofgate.config.settings import Settings
from proofgate.policy_samples import (
    Failure,
    Verdict,
    example_failures,
    judge,
    read_samples,
    sample_failures,
)

_EXCERPT = 48


def test(options: argparse.Namespace) -> int:
    """Runs the examples of the configuration's own rules, and samples; 1 when one fails."""
    try:
        settings = load_settings(options.config)
        samples = read_samples(options.samples, settings) if options.samples else {}
    except InvalidConfigError as error:
        return _refused(error)
    failures = [*example_failures(settings.policy), *sample_failures(settings, samples)]
    rules = settings.policy.rules
    examples = sum(len(rule.examples.match) + len(rule.examples.no_match) for rule in rules)
    tried = f"{examples} examples of {len(rules)} rules, {len(samples)} samples"
    if failures:
        print(_table([("where", "text", "expected", "got", "matched"), *map(_failure_row, failures)]))
        return fail(f"{len(failures)} failed: {tried}", EXIT_FAILED)
    print(f"passed: {tried}")
    return EXIT_OK


def rules(options: argparse.Namespace) -> int:
    """Lists the rules that are in force."""
    try:
        settings = load_settings(options.config)
    except InvalidConfigError as error:
        return _refused(error)
    policy = settings.policy
    if options.pack is not None and options.pack not in policy.packs:
        return fail(unknown("pack", options.pack, policy.packs, "list it under policy.packs"), EXIT_USAGE)
    listed = [
        rule
        for rule in rules_of(policy, actions=[])
        if options.pack is None or rule["pack"] == options.pack
    ]
    in_force = {str(rule["id"]) for rule in rules_of(policy)}
    off = [str(rule["id"]) for rule in listed if rule["id"] not in in_force]
    active = [rule for rule in rules_of(policy) if options.pack is None or rule["pack"] == options.pack]
    own = {rule.id for rule in policy.rules}
    print(
        _table(
            [
                ("id", "pack", "target", "view", "score", "action", "reason"),
                *_rule_rows(active, own, settings),
            ]
        )
    )
    print(
        f"{len(active)} rules, {policy.mode}, threshold {policy.threshold or 'none'}"
        + (f"; off: {', '.join(off)}" if off else "")
    )
    return EXIT_OK


def check(options: argparse.Namespace) -> int:
    """Shows what the policy makes of one text."""
    try:
        settings = load_settings(options.config)
    except InvalidConfigError as error:
        return _refused(error)
    tenants = {tenant.name: tenant for tenant in settings.tenants}
    if options.tenant is not None and options.tenant not in tenants:
        return fail(unknown("tenant", options.tenant, tenants, "define it under tenants"), EXIT_USAGE)
    try:
        text = sys.stdin.buffer.read().decode() if options.text == "-" else options.text
        text.encode()
    except UnicodeError:
        return fail("the text is not UTF-8", EXIT_USAGE)
    verdict = judge(settings, options.tenant, options.direction, text)
    override = tenants[options.tenant].policy if options.tenant else None
    threshold = (override and override.threshold) or settings.policy.threshold
    bound = f" of {threshold}" if threshold else ""
    print(f"decision: {_decision(verdict)}\nscore: {verdict.score}{bound}")
    print("matches:" if verdict.matches else "matches: none")
    if verdict.matches:
        spans = [
            (f"  {match.rule}", f"bytes {match.start}-{match.end}", _shown(match.excerpt(text)))
            for match in verdict.matches
        ]
        print(_table(spans))
    return EXIT_OK


def _refused(error: InvalidConfigError) -> int:
    return fail(f"the configuration is not usable\n{error}", EXIT_USAGE)


def _decision(verdict: Verdict) -> str:
    causes = []
    if verdict.by_score:
        causes.append("by score")
    elif verdict.rule is not None:
        causes.append(f"by {verdict.rule}")
    if verdict.would_block and verdict.decision != "block":
        causes.append("dry-run: would block")
    return f"{verdict.decision} ({', '.join(causes)})" if causes else verdict.decision


def _failure_row(failure: Failure) -> Sequence[str]:
    verdict = failure.verdict
    matched = [f"{match.rule} {_shown(match.excerpt(failure.text))}" for match in verdict.matches]
    return (
        failure.where,
        _shown(failure.text),
        failure.expected,
        _decision(verdict),
        ", ".join(matched) or "nothing",
    )


def _rule_rows(rules: Iterable[dict[str, Any]], own: set[str], settings: Settings) -> Iterable[Sequence[str]]:
    override = policy_document(settings.policy)["action"]
    for rule in rules:
        pack = "-" if rule["id"] in own else rule["pack"]
        action = override or rule["action"]
        yield (rule["id"], pack, rule["target"], rule["view"], str(rule["score"]), action, rule["reason"])


def _shown(text: str) -> str:
    """A short quotation that no text can leave: control characters are escaped."""
    short = text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
    return json.dumps(short, ensure_ascii=not short.isprintable())


def _table(rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as their widest entry."""
    listed = list(rows)
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    return "\n".join(
        "  ".join(entry.ljust(width) for entry, width in zip(row, widths, strict=True)).rstrip()
        for row in listed
    )

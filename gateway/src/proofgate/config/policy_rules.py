"""Checks that the policy's rules can be compiled, and that every named rule exists."""

from __future__ import annotations

import json
from collections.abc import Mapping

from proofgate_schema.policy import ActionOverride, Policy
from proofgate_schema.terms import Terms

from proofgate import _core
from proofgate.config.document import FieldPath
from proofgate.config.problems import Findings, report_duplicates
from proofgate.config.references import unknown_name_message
from proofgate.config.settings import Settings

#: Packs whose rules can only flag: a learned score is no reason to change or refuse a text.
FLAG_ONLY_PACKS = frozenset(("instruction-likeness",))
#: Packs with rules for texts that give a model instructions.
INSTRUCTION_PACKS = frozenset(("prompt-injection", "jailbreak", "exfiltration", "obfuscation"))


def check_policy(settings: Settings, findings: Findings) -> None:
    """Compiles the rules as the worker does. Reports each rule that is refused, and each name of an unknown
    rule."""
    policy = settings.policy
    report_duplicates((rule.id for rule in policy.rules), ("policy", "rules"), "id", findings)
    built_in = _built_in(policy, findings)
    for position, rule in enumerate(policy.rules):
        if rule.id in (built_in or {}):
            message = f"the pack {(built_in or {})[rule.id]} already has a rule {rule.id}: rename yours"
            findings.report("config_duplicate_name", ("policy", "rules", position, "id"), message)
        _check_rule(policy, position, findings)
    _check_guarded_tools(settings, findings)
    if built_in is not None:
        _check_actions(settings, built_in, findings)
    if policy.rules and not any(problem.path[:1] == ("policy",) for problem in findings.problems):
        _compile_rules(policy, {}, ("policy", "rules"), findings)


def rules_of(policy: Policy, **changes: object) -> list[dict[str, object]]:
    """The rules of a policy, as the core lists them. Raises the core's ConfigError."""
    rules: list[dict[str, object]] = json.loads(
        _core.policy_rules(json.dumps(policy.to_document() | changes))
    )
    return rules


def _built_in(policy: Policy, findings: Findings) -> dict[str, str] | None:
    """The pack of every built-in rule by rule id; None if a pack is refused, so that the ids are unknown."""
    built_in: dict[str, str] = {}
    complete = True
    for position, pack in enumerate(policy.packs):
        path = ("policy", "packs", position)
        if pack in policy.packs[:position]:
            findings.report("config_duplicate_name", path, f"the pack {pack} is listed twice: remove one")
            continue
        rules = _compile_rules(policy, {"packs": [pack], "rules": []}, path, findings)
        complete = complete and rules is not None
        built_in |= {str(rule["id"]): pack for rule in rules or ()}
    return built_in if complete else None


def _check_rule(policy: Policy, position: int, findings: Findings) -> None:
    path = ("policy", "rules", position)
    rule = policy.rules[position]
    if not rule.regex and not rule.literals:
        message = "the rule has nothing to look for: set literals or regex"
        findings.report("config_empty_rule", path, message)
        return
    _compile_rules(policy, {"packs": [], "rules": [rule.to_document()]}, path, findings)


def _check_actions(settings: Settings, built_in: Mapping[str, str], findings: Findings) -> None:
    known = {*built_in, *(rule.id for rule in settings.policy.rules)}
    lists: list[tuple[FieldPath, tuple[ActionOverride, ...]]] = [(("policy",), settings.policy.actions)]
    terms: dict[str, tuple[Terms, ...]] = {"plans": settings.plans, "tenants": settings.tenants}
    for section, entries in terms.items():
        for position, entry in enumerate(entries):
            if entry.policy is not None:
                lists.append(((section, position, "policy"), entry.policy.actions))
    for where, overrides in lists:
        for number, override in enumerate(overrides):
            path = (*where, "actions", number)
            if not override.packs and not override.rules:
                findings.report("config_missing_field", path, "this entry names no rules: set packs or rules")
            for place, name in enumerate(override.packs):
                if name not in settings.policy.packs:
                    message = unknown_name_message(
                        "pack", name, settings.policy.packs, "list it under policy.packs"
                    )
                    findings.report("config_unknown_pack", (*path, "packs", place), message)
            for place, name in enumerate(override.rules):
                if name not in known:
                    message = unknown_name_message(
                        "rule", name, known, "list them with proofgate policy rules"
                    )
                    findings.report("config_unknown_rule", (*path, "rules", place), message)
            _check_flag_only_packs(override, path, built_in, findings)


def _check_flag_only_packs(
    override: ActionOverride, path: FieldPath, built_in: Mapping[str, str], findings: Findings
) -> None:
    """Reports an action other than a flag for a pack with a learned score: it would suggest protection that
    does not exist."""
    if override.action in ("Flag", "Ignore"):
        return
    packs = ((("packs", place), name, name) for place, name in enumerate(override.packs))
    rules = ((("rules", place), name, built_in.get(name)) for place, name in enumerate(override.rules))
    for place, name, pack in (*packs, *rules):
        if pack in FLAG_ONLY_PACKS:
            message = (
                f"{name} is a learned score and can only flag: set the action of this entry to "
                f"Flag or Ignore instead of {override.action}, or remove {name} from the entry"
            )
            findings.report("config_flags_only", (*path, *place), message)


def _check_guarded_tools(settings: Settings, findings: Findings) -> None:
    """Reports guarded tools without an instruction pack: nothing would ever be flagged as instructions."""
    if INSTRUCTION_PACKS.intersection(settings.policy.packs):
        return
    terms: dict[str, tuple[Terms, ...]] = {"plans": settings.plans, "tenants": settings.tenants}
    for section, entries in terms.items():
        for position, entry in enumerate(entries):
            if entry.guarded_tools is not None:
                message = (
                    "guardedTools needs a pack that flags attacks: list prompt-injection under policy.packs"
                )
                findings.report("config_missing_field", (section, position, "guardedTools"), message)


def _compile_rules(
    policy: Policy, changes: dict[str, object], path: FieldPath, findings: Findings
) -> list[dict[str, object]] | None:
    """The rules of a part of the policy, or None after reporting why it is refused."""
    try:
        return rules_of(policy, actions=[], **changes)
    except _core.ConfigError as error:
        findings.report("config_bad_policy", path, str(error))
        return None

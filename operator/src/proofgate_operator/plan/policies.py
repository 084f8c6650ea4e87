"""Checks of a policy that the schema cannot express.

The workers compile the rules, and refuse a configuration with an invalid rule. This module finds common
mistakes earlier. The workers decide finally whether a regular expression is valid; if not, they keep their
current policy.
"""

import re
import warnings
from collections.abc import Iterator
from itertools import accumulate
from re import _parser  # type: ignore[attr-defined]

from proofgate_schema.policy import ActionOverride, Policy, Rule

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.plan.pack_rules import PACK_RULES
from proofgate_operator.plan.problems import Problem

_REASON = "PolicyInvalid"
#: A unit of a regular expression: an escape, or a class with its content.
_ESCAPE_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_UNBOUNDED = re.compile(r"[*+]|\{[0-9]*,\}")
#: A brace that starts no repetition in the workers' syntax: Python reads `{,3}` as one, and others literally.
_STRAY_BRACE = re.compile(r"\{(?![0-9]+(?:,[0-9]*)?\})")
#: The longest match that the workers accept, in bytes. Every character has at least one byte.
_MAX_MATCH_BYTES = 1024
#: The maximum nesting of groups. The workers' parser accepts 250 levels; a repeated group of alternatives
#: takes four.
_MAX_GROUP_DEPTH = 60


def policy_problems(gateway: Gateway) -> Iterator[Problem]:
    """Yield the problems of the gateway's policy and of its tenants' policies."""
    policy = gateway.spec.policy or Policy()
    known: set[str] = set()
    for pack in policy.packs:
        known |= PACK_RULES[pack]
    for rule in policy.rules:
        where = f"spec.policy.rules[{rule.id}]"
        if rule.id in known:
            yield Problem(_REASON, f"{where}: a pack already has a rule with this id: rename this rule")
        for fault in _rule_faults(rule):
            yield Problem(_REASON, f"{where}{fault}")
    known |= {rule.id for rule in policy.rules}
    yield from _unknown("spec.policy", policy.actions, policy, known)
    named = [(f"spec.plans[{plan.name}]", plan.policy) for plan in gateway.spec.plans]
    named += [(f"spec.tenants[{tenant.name}]", tenant.policy) for tenant in gateway.spec.tenants]
    for where, terms in named:
        if terms is not None:
            yield from _unknown(f"{where}.policy", terms.actions, policy, known)


def _unknown(
    where: str, overrides: tuple[ActionOverride, ...], policy: Policy, known: set[str]
) -> Iterator[Problem]:
    for number, override in enumerate(overrides):
        for pack in override.packs:
            if pack not in policy.packs:
                yield Problem(_REASON, f"{where}.actions[{number}].packs: spec.policy.packs has no {pack}")
        for name in override.rules:
            if name not in known:
                message = f"no pack in spec.policy.packs and no rule in spec.policy.rules has the id {name}"
                yield Problem(_REASON, f"{where}.actions[{number}].rules: {message}")


def _rule_faults(rule: Rule) -> Iterator[str]:
    if not rule.reason.strip() or not rule.reason.isprintable():
        yield ".reason: it is not one line of printable characters"
    if any(literal != literal.lower() for literal in rule.literals):
        yield ".literals: they are compared with lower-case text: write them in lower case"
    fault = regex_fault(rule.regex) if rule.regex else None
    if fault:
        yield f".regex: {fault}"


def regex_fault(regex: str) -> str | None:
    """Return why the workers would refuse a regular expression; None if no fault was found.

    The expression is parsed, but never compiled or matched: its author could make that arbitrarily expensive.
    """
    bare = _ESCAPE_OR_CLASS.sub("x", regex)
    if max(accumulate((one == "(") - (one == ")") for one in bare), default=0) > _MAX_GROUP_DEPTH:
        return f"its groups nest deeper than {_MAX_GROUP_DEPTH} levels"
    try:
        with warnings.catch_warnings(action="error"):
            shortest, longest = _parser.parse(_to_python_syntax(regex)).getwidth()
    except Exception as error:
        # Any exception of the parser is a fault of this expression and must not affect others.
        return f"it is not a regular expression: {error}"
    escapes = set(re.findall(r"\\(.)", regex, re.DOTALL))
    if re.search(r"\(\?(?!:|P?<value>|P<)", bare) or escapes & set("123456789"):
        return "flags, look-around and back-references are not supported"
    if re.search(r"\(\?P<(?!value>)", bare):
        return "the only named group is (?<value>...), which marks the value; write other groups as (?:...)"
    if re.search(r"[$^]", bare) or escapes & set("AZz"):
        return "anchors are not supported, apart from \\b and \\B: a text may arrive in pieces"
    if _UNBOUNDED.search(bare):
        return "a match can be of any length: limit its repetitions, {0,80} instead of *"
    if _STRAY_BRACE.search(bare):
        return "a brace that does not begin a repetition such as {3} or {0,80} must be written \\{"
    if shortest == 0:
        return "it matches the empty text"
    if longest > _MAX_MATCH_BYTES:
        return f"a match can be longer than {_MAX_MATCH_BYTES} bytes: limit its repetitions"
    return None


def _to_python_syntax(regex: str) -> str:
    """Return a regular expression with `P` before group names, as Python requires."""
    parts = re.finditer(rf"(?:{_ESCAPE_OR_CLASS.pattern})|\(\?<value>|.", regex, re.DOTALL)
    return "".join("(?P<value>" if part[0] == "(?<value>" else part[0] for part in parts)

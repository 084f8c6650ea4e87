"""What is wrong with a policy, where the schema cannot tell.

The workers compile the rules, and refuse a configuration with one that cannot be used. This finds beforehand
what people get wrong; the last word on a regular expression is the workers', which keep the policy they have.
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
#: What stands for itself in a regular expression: an escape, or a class with all that is in it.
_ESCAPE_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_UNBOUNDED = re.compile(r"[*+]|\{[0-9]*,\}")
#: A brace that begins no repetition the workers know: Python reads `{,3}` as one, and others as they stand.
_STRAY_BRACE = re.compile(r"\{(?![0-9]+(?:,[0-9]*)?\})")
#: The longest match that the workers take, in bytes. No character has less than one.
_MAX_MATCH_BYTES = 1024
#: How deep groups may nest. The workers' parser takes 250 levels; a repeated group of alternatives is four.
_MAX_GROUP_DEPTH = 60


def policy_problems(gateway: Gateway) -> Iterator[Problem]:
    """Yield what is wrong with the gateway's policy and its tenants'."""
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
    """Return why the workers would refuse a regular expression; None if nothing is seen to be wrong.

    It is parsed, and never compiled or matched: what that costs, whoever wrote it could choose.
    """
    bare = _ESCAPE_OR_CLASS.sub("x", regex)
    if max(accumulate((one == "(") - (one == ")") for one in bare), default=0) > _MAX_GROUP_DEPTH:
        return f"its groups nest deeper than {_MAX_GROUP_DEPTH} levels"
    try:
        with warnings.catch_warnings(action="error"):
            shortest, longest = _parser.parse(_to_python_syntax(regex)).getwidth()
    except Exception as error:
        # Whatever a text makes the parser raise is that text's fault, and keeps nobody from the rest.
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
    """Return a regular expression with the P that Python wants before a group's name."""
    parts = re.finditer(rf"(?:{_ESCAPE_OR_CLASS.pattern})|\(\?<value>|.", regex, re.DOTALL)
    return "".join("(?P<value>" if part[0] == "(?<value>" else part[0] for part in parts)

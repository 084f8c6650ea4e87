"""Messages about policies that the workers would refuse."""

import json
import subprocess
import sys
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proofgate import _core

from proofgate_operator.plan.policies import policy_problems, regex_fault
from tests import pack_rules
from tests.gateways import SPEC, gateway

RULE = {"id": "codename", "reason": "It names a project.", "literals": ["bluebird"]}


def messages(policy: dict[str, Any] | None = None, tenant: dict[str, Any] | None = None) -> list[str]:
    acme, globex = SPEC["tenants"]
    changes: dict[str, Any] = {} if policy is None else {"policy": policy}
    if tenant is not None:
        changes["tenants"] = [{**acme, "policy": tenant}, globex]
    found = list(policy_problems(gateway(**changes)))
    assert {problem.reason for problem in found} <= {"PolicyInvalid"}
    return [problem.message for problem in found]


def test_the_packs_rules_are_those_that_the_workers_have() -> None:
    assert pack_rules.FILE.read_text() == pack_rules.rendered(), "python -m tests.pack_rules"


def test_a_policy_that_is_right_is_not_complained_of() -> None:
    policy = {"packs": ["pii"], "rules": [RULE], "actions": [{"rules": ["pii-email"], "action": "Ignore"}]}
    assert messages(policy, {"actions": [{"rules": ["codename"], "action": "Ignore"}]}) == []
    assert messages() == []


def test_a_rule_that_does_not_exist_cannot_be_turned_off() -> None:
    policy = {"packs": ["secrets"], "actions": [{"rules": ["pii-email"], "action": "Ignore"}]}
    known = "no pack in spec.policy.packs and no rule in spec.policy.rules has the id"
    assert messages(policy) == [f"spec.policy.actions[0].rules: {known} pii-email"]
    assert messages(None, {"actions": [{"rules": ["pii-emial"], "action": "Ignore"}]}) == [
        f"spec.tenants[acme].policy.actions[0].rules: {known} pii-emial"
    ]


def test_a_pack_that_is_not_in_use_has_no_actions() -> None:
    policy = {"packs": ["secrets"], "actions": [{"packs": ["pii"], "action": "Flag"}]}
    assert messages(policy) == ["spec.policy.actions[0].packs: spec.policy.packs has no pii"]


def test_a_rule_cannot_have_the_id_of_a_packs_rule() -> None:
    (message,) = messages({"packs": ["pii"], "rules": [{**RULE, "id": "pii-email"}]})
    assert message == "spec.policy.rules[pii-email]: a pack already has a rule with this id: rename this rule"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"literals": ["É"]}, "spec.policy.rules[codename].literals: they are compared"),
        ({"reason": "   "}, "spec.policy.rules[codename].reason: it is not one line"),
        ({"reason": "zero\u200bwidth"}, "spec.policy.rules[codename].reason: it is not one line"),
        ({"regex": "["}, "spec.policy.rules[codename].regex: it is not a regular expression"),
    ],
)
def test_a_rule_that_cannot_be_used_is_named_with_its_field(changes: dict[str, Any], complaint: str) -> None:
    (message,) = messages({"rules": [{**RULE, **changes}]})
    assert message.startswith(complaint)


#: Short texts that could keep a parser or a matcher busy.
COSTLY = [
    ("(?:(?:a?|b){5000}){5000}", "the empty text"),
    ("(?:(?:(?:a?){9999}){9999}){9999}b", "longer than 1024 bytes"),
    (f"{'(' * 511}a{')' * 511}", "nest deeper than 60 levels"),
    ("a{4294967295}", "it is not a regular expression"),
    ("(?:" * 60 + "a" + "{0,9999999})" * 60 + "b", "longer than 1024 bytes"),
]


def nested(levels: int) -> str:
    """Return groups that use as many levels of the workers' parser as possible."""
    return f"{'(?:' * levels}[a-cx]{'{1}c|d)' * levels}{{1}}c|d"


REFUSED = [
    (nested(62), "nest deeper than 60 levels"),
    ("(", "it is not a regular expression"),
    ("[[a]]", "it is not a regular expression"),
    ("(?i)a", "flags"),
    ("(?u)a", "flags"),
    ("(?iu)codename", "flags"),
    ("(?a)a", "flags"),
    ("(?L)a", "it is not a regular expression"),
    ("(?u:a)", "flags"),
    ("a(?=b)", "flags"),
    (r"(a)\1", "flags"),
    (r"(?P<value>a)(?P=value)", "flags"),
    (r"(?P<x>a)", "the only named group is"),
    (r"(?<x>a)", "it is not a regular expression"),
    ("^a", "anchors"),
    ("a$", "anchors"),
    (r"a\Z", "anchors"),
    ("a+", "any length"),
    ("a{2,}", "any length"),
    ("a.*b", "any length"),
    ("a{", "does not begin a repetition"),
    ("{1}a", "it is not a regular expression"),
    ('{"role": "admin"}', "does not begin a repetition"),
    ("a{1,x}", "does not begin a repetition"),
    ("a{,5}b", "does not begin a repetition"),
    ("a{}", "does not begin a repetition"),
    ("a{0,3}", "the empty text"),
    (r"\b", "the empty text"),
    (r"(?:a|\Bb?)", "the empty text"),
    ("a{1025}", "longer than 1024 bytes"),
    ("(?:a|b{513}){2}", "longer than 1024 bytes"),
    *COSTLY,
]
#: Fragments that may confuse a parser, in any order.
PIECES = [*"()?P<=:!-aiuxL>|[]^$.*+{},0\\N#é\ud800", "(?", "(?u)", "9999999999", r"\U0011"]
ACCEPTED = [
    nested(60),
    r"(?P<value>a)",
    r"(?<value>a)",
    r"key: (?:(?<value>a{1,9})|b)",
    r"\(\?<value>",
    r"[(?<value>]",
    r"\\1",
    r"staff-[0-9]{6}",
    r"\bab?c{1,3}\b",
    r"[+*^$]x",
    r"a\+b\$",
    r"[]a-c]z",
    r"(?:ab|cd){2}",
    r"a[^\]+]b",
    "a{0,5}b}",
    r"\{a[{]",
]


def engine_refuses(regex: str) -> bool:
    rule = {"id": "x", "reason": "x", "view": "Text", "regex": regex}
    try:
        _core.policy_rules(json.dumps({"rules": [rule]}))
    except _core.ConfigError:
        return True
    return False


@pytest.mark.parametrize(("regex", "complaint"), REFUSED)
def test_a_regex_that_the_workers_refuse_is_refused(regex: str, complaint: str) -> None:
    assert complaint in (regex_fault(regex) or "")
    assert engine_refuses(regex)


def test_whatever_a_regex_says_little_memory_tells_what_is_wrong_with_it() -> None:
    child = """if True:
        import json, resource, sys
        from proofgate_operator.kube.nesting_limit import raise_recursion_limit
        from proofgate_operator.plan.policies import regex_fault
        raise_recursion_limit()
        resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))
        print(json.dumps([regex_fault(regex) for regex in json.load(sys.stdin)]))
    """
    regexes = json.dumps([regex for regex, _ in COSTLY])
    done = subprocess.run([sys.executable, "-c", child], input=regexes, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    faults = json.loads(done.stdout)
    for (regex, complaint), fault in zip(COSTLY, faults, strict=True):
        assert len(regex) <= 1024 and complaint in fault, regex


@given(st.lists(st.sampled_from(PIECES), max_size=24).map("".join))
def test_no_regex_keeps_anybody_from_the_rest_of_a_policy(regex: str) -> None:
    assert regex_fault(regex) != ""


@pytest.mark.parametrize("regex", ACCEPTED)
def test_a_regex_that_the_workers_take_is_taken(regex: str) -> None:
    assert regex_fault(regex) is None
    assert not engine_refuses(regex)


def test_every_regex_of_the_packs_is_taken() -> None:
    folder = pack_rules.FILE.parents[4] / "rust-core" / "crates" / "policy" / "packs"
    for path in sorted(folder.glob("*.toml")):
        for rule in tomllib.loads(path.read_text())["rule"]:
            if "regex" in rule:
                assert regex_fault(rule["regex"]) is None, rule["id"]

"""The policy section: loaded settings, and refusals."""

from __future__ import annotations

import pytest
from conftest import ConfigDirectory

from proofgate.config import InvalidConfigError, load, load_settings

RULES = """
policy:
  packs: [secrets, pii]
  mode: DryRun
  action: Redact
  threshold: 80
  budgetMilliseconds: 2.5
  budgetMicrosecondsPerKibibyte: 50
  attachments: Skip
  actions: [{rules: [pii-phone], action: Ignore}]
  rules:
    - id: project-aurora
      reason: The project is confidential.
      literals: [project aurora]
      examples: {match: [We met about Project Aurora.], noMatch: [aurora borealis]}
    - id: ticket
      reason: The text names a ticket.
      target: Response
      view: Text
      regex: TICKET-[0-9]{4}
      score: 5
      action: Flag
"""


def test_a_policy_reaches_the_core_as_it_is_written(config_directory: ConfigDirectory) -> None:
    config_directory.append(RULES)
    assert config_directory.core()["policy"] == {
        "packs": ["secrets", "pii"],
        "mode": "DryRun",
        "action": "Redact",
        "threshold": 80,
        "budgetMilliseconds": 2.5,
        "budgetMicrosecondsPerKibibyte": 50,
        "attachments": "Skip",
        "actions": [{"packs": [], "rules": ["pii-phone"], "scopes": [], "action": "Ignore"}],
        "allow": None,
        "flagThreshold": 50,
        "rules": [
            {
                "id": "project-aurora",
                "reason": "The project is confidential.",
                "target": "Both",
                "view": "Folded",
                "literals": ["project aurora"],
                "regex": None,
                "check": None,
                "score": 100,
                "action": "Block",
                "examples": {"match": ["We met about Project Aurora."], "noMatch": ["aurora borealis"]},
            },
            {
                "id": "ticket",
                "reason": "The text names a ticket.",
                "target": "Response",
                "view": "Text",
                "literals": [],
                "regex": "TICKET-[0-9]{4}",
                "check": None,
                "score": 5,
                "action": "Flag",
                "examples": {"match": [], "noMatch": []},
            },
        ],
    }


def test_a_tenants_policy_reaches_the_core(config_directory: ConfigDirectory) -> None:
    config_directory.append(RULES)
    ignored = "{rules: [pii-email, ticket], action: Ignore}"
    override = f"policy: {{mode: Enforce, action: Flag, threshold: 200, actions: [{ignored}]}}"
    config_directory.replace("name: acme", f"name: acme\n    {override}")
    assert config_directory.core()["tenants"][0]["policy"] == {
        "mode": "Enforce",
        "action": "Flag",
        "threshold": 200,
        "actions": [{"packs": [], "rules": ["pii-email", "ticket"], "scopes": [], "action": "Ignore"}],
        "flagThreshold": None,
    }


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("packs: [secrets, pii]", "packs: [secret, pii]", 34, "policy.packs[0]: packs: there is no pack"),
        ("packs: [secrets, pii]", "packs: [pii, pii]", 34, "policy.packs[1]: the pack pii is listed twice"),
        (
            "[pii-phone]",
            "[pii-fone]",
            41,
            "policy.actions[0].rules[0]: no rule is named pii-fone: did you mean",
        ),
        (
            "regex: TICKET-[0-9]{4}",
            "regex: TICKET-[0-9]+",
            47,
            "policy.rules[1]: rule ticket: regex: can match",
        ),
        ("regex: TICKET-[0-9]{4}", "regex: TICKET-[", 47, "policy.rules[1]: rule ticket: regex: "),
        ("regex: TICKET-[0-9]{4}", "regex: ''", 47, "set literals or regex"),
        ("id: ticket", "id: project-aurora", 47, "policy.rules[1].id: project-aurora is already defined"),
        ("id: ticket", "id: pii-email", 47, "the pack pii already has a rule pii-email: rename yours"),
        ("id: ticket", "id: Ticket", 47, "policy.rules[1].id: write the id in kebab-case"),
        ("score: 5", "score: 1001", 52, "policy.rules[1].score"),
        ("action: Flag", "action: allow", 53, "policy.rules[1].action"),
        ("[project aurora]", "[Project Aurora]", 45, "in lower case"),
        ("The text names a ticket.", '"two\\nlines"', 48, "write one line"),
        ("mode: DryRun", "mode: off", 35, "policy.mode"),
        ("threshold: 80", "threshold: 0", 37, "policy.threshold"),
        ("budgetMilliseconds: 2.5", "budgetMilliseconds: 0", 38, "policy.budgetMilliseconds"),
    ],
)
def test_a_policy_that_cannot_hold_is_refused_with_its_line(
    config_directory: ConfigDirectory, old: str, new: str, line: int, message: str
) -> None:
    config_directory.append(RULES)
    config_directory.replace(old, new)
    error = config_directory.problems()
    assert message in str(error)
    assert line in [problem.line for problem in error.problems]


def test_an_unknown_rule_of_a_tenant_is_refused_with_the_likely_one(
    config_directory: ConfigDirectory,
) -> None:
    config_directory.append(RULES)
    config_directory.replace(
        "name: acme", "name: acme\n    policy: {actions: [{rules: [ticket, project-aurra], action: Ignore}]}"
    )
    (problem,) = config_directory.problems().problems
    assert problem.code == "config_unknown_rule"
    assert problem.path == ("tenants", 0, "policy", "actions", 0, "rules", 1)
    assert "did you mean project-aurora?" in problem.message


def test_an_unknown_pack_hides_no_other_problem_and_invents_none(config_directory: ConfigDirectory) -> None:
    config_directory.append(RULES)
    config_directory.replace("packs: [secrets, pii]", "packs: [secrets, pi]")
    config_directory.replace("TICKET-[0-9]{4}", "TICKET-[0-9]+")
    assert config_directory.codes() == ["config_bad_policy", "config_bad_policy"]


def test_rules_can_be_worked_on_without_any_of_the_named_files(config_directory: ConfigDirectory) -> None:
    config_directory.append(RULES)
    for name in ("signing-key", "openai-key", "admin-token", "globex-keys"):
        (config_directory.path / name).unlink()
    assert [rule.id for rule in load_settings(config_directory.file).policy.rules] == [
        "project-aurora",
        "ticket",
    ]
    assert set(config_directory.codes()) == {"config_file_unreadable"}


def test_without_a_policy_there_are_no_rules(config_directory: ConfigDirectory) -> None:
    policy = load(config_directory.file).settings.policy
    assert (policy.packs, policy.rules) == ((), ())


GUARDED = "guardedTools: {names: [Bash, 'mcp__github__*'], onFlag: RequireApproval}"


def test_guarded_tools_reach_the_core_and_leave_the_terms_of_others_as_they_were(
    config_directory: ConfigDirectory,
) -> None:
    config_directory.append("policy: {packs: [prompt-injection]}")
    config_directory.replace("name: acme", f"name: acme\n    {GUARDED}")
    acme, globex = config_directory.core()["tenants"]
    assert acme["guardedTools"] == {"names": ["Bash", "mcp__github__*"], "onFlag": "RequireApproval"}
    assert globex["guardedTools"] is None


@pytest.mark.parametrize("name", ["*Bash", "mcp__*__push", "my tool", "-x", "", "x" * 129])
def test_a_bad_name_of_a_guarded_tool_is_named_in_plain_words(
    config_directory: ConfigDirectory, name: str
) -> None:
    config_directory.append("policy: {packs: [prompt-injection]}")
    config_directory.replace("name: acme", f"name: acme\n    guardedTools: {{names: [Read, {name!r}]}}")
    with pytest.raises(InvalidConfigError) as caught:
        load_settings(config_directory.file)
    (problem,) = caught.value.problems
    assert problem.path == ("tenants", 0, "guardedTools", "names", 1)
    assert f'"{name}" is not a tool name: write at most 128 letters, digits and _' in problem.message
    assert "[A-Za-z" not in problem.message


LIKENESS = """
policy:
  packs: [prompt-injection, instruction-likeness]
  actions:
    - {PLACE: [NAME], action: ACTION}
"""


@pytest.mark.parametrize("place", ["packs", "rules"])
@pytest.mark.parametrize("action", ["Block", "Redact", "Mask"])
def test_a_learned_score_cannot_be_made_to_do_more_than_flag(
    config_directory: ConfigDirectory, place: str, action: str
) -> None:
    policy = LIKENESS.replace("PLACE", place).replace("NAME", "instruction-likeness")
    config_directory.append(policy.replace("ACTION", action))
    with pytest.raises(InvalidConfigError) as caught:
        load_settings(config_directory.file)
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("config_flags_only", ("policy", "actions", 0, place, 0))
    assert "can only flag: set the action of this entry to Flag or Ignore" in problem.message
    assert f"instead of {action}, or remove" in problem.message


def test_a_tenant_cannot_make_it_do_more_either(config_directory: ConfigDirectory) -> None:
    config_directory.append("policy: {packs: [instruction-likeness]}")
    entry = "{packs: [instruction-likeness], action: Block}"
    config_directory.replace("name: acme", f"name: acme\n    policy: {{actions: [{entry}]}}")
    with pytest.raises(InvalidConfigError) as caught:
        load_settings(config_directory.file)
    assert caught.value.problems[0].path == ("tenants", 0, "policy", "actions", 0, "packs", 0)


@pytest.mark.parametrize(
    ("place", "name", "action"),
    [
        ("packs", "instruction-likeness", "Flag"),
        ("rules", "instruction-likeness", "Ignore"),
        ("packs", "prompt-injection", "Block"),
    ],
)
def test_what_a_learned_score_can_do_and_other_rules_do_is_accepted(
    config_directory: ConfigDirectory, place: str, name: str, action: str
) -> None:
    policy = LIKENESS.replace("PLACE", place).replace("NAME", name).replace("ACTION", action)
    config_directory.append(policy)
    assert load_settings(config_directory.file).policy.actions[0].action == action


@pytest.mark.parametrize(
    ("guarded", "code"),
    [
        ("{names: [Bash]}", "config_missing_field"),
        ("{names: []}", "config_invalid_value"),
        ("{names: ['*Bash']}", "config_invalid_value"),
        ("{names: [Bash], onFlag: Block}", "config_invalid_value"),
    ],
)
def test_guarded_tools_that_guard_nothing_are_refused(
    config_directory: ConfigDirectory, guarded: str, code: str
) -> None:
    config_directory.append("policy: {packs: [secrets]}")
    config_directory.replace("name: acme", f"name: acme\n    guardedTools: {guarded}")
    with pytest.raises(InvalidConfigError) as caught:
        load_settings(config_directory.file)
    assert caught.value.problems[0].path[:3] == ("tenants", 0, "guardedTools")
    assert caught.value.problems[0].code == code

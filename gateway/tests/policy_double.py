"""A small stand-in for the policy engine: three packs, literals and regexes, actions, scores and modes.

Texts are folded by lower case alone, and offsets are right for ASCII.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

SCOPES = (
    "instructions",
    "user",
    "assistant",
    "tool_description",
    "tool_arguments",
    "tool_result",
    "other",
    "answer",
)
PACKS: dict[str, list[Json]] = {
    "prompt-injection": [
        {
            "id": "injection-override",
            "reason": "The text tells the model to ignore its instructions.",
            "target": "request",
            "view": "folded",
            "literals": [],
            "regex": "ignore all previous instructions",
            "check": None,
            "score": 60,
            "action": "flag",
        }
    ],
    "jailbreak": [],
    "instruction-likeness": [
        {
            "id": "instruction-likeness",
            "reason": "A part of the text reads like instructions of an attack.",
            "target": "request",
            "view": "text",
            "literals": [],
            "regex": "instructions of an attack",
            "check": None,
            "score": 50,
            "action": "flag",
        }
    ],
    "exfiltration": [],
    "obfuscation": [],
    "secrets": [
        {
            "id": "secret-aws-access-key-id",
            "reason": "The text holds an AWS access key id.",
            "target": "both",
            "view": "text",
            "literals": [],
            "regex": "AKIA[0-9A-Z]{16}",
            "check": None,
            "score": 100,
            "action": "block",
        }
    ],
    "pii": [
        {
            "id": f"pii-{name}",
            "reason": f"The text holds {name}.",
            "target": "both",
            "view": "folded",
            "literals": [],
            "regex": regex,
            "check": None,
            "score": 40,
            "action": "redact",
        }
        for name, regex in (("email", "[a-z]{1,20}@[a-z.]{1,20}"), ("phone", r"\+[0-9]{6,15}"))
    ],
}

#: What takes a match out of a request: for good, or until the answer.
REPLACES = ("redact", "mask")


@dataclass(frozen=True)
class Rule:
    """One rule with its pack; None for one of the user's own."""

    pack: str | None
    fields: Json
    pattern: re.Pattern[str] = field(compare=False)

    def action(self, overrides: list[Json], everywhere: str | None, scope: str | None = None) -> str:
        """What it does in a scope; without one, where a policy names no scopes."""
        action = str(everywhere or self.fields["action"])
        for override in overrides:
            is_meant = self.pack in override["packs"] or self.fields["id"] in override["rules"]
            if is_meant and (override["scopes"] is None or scope in override["scopes"]):
                action = override["action"]
        return action

    def listed(self, overrides: list[Json], everywhere: str | None) -> Json:
        """As `_core.policy_rules` lists it."""
        names = ("id", "reason", "target", "view", "score")
        actions = {scope: self.action(overrides, everywhere, scope) for scope in SCOPES}
        return {"pack": self.pack, "examples": {"match": [], "no_match": []}, "actions": actions} | {
            name: self.fields[name] for name in names
        }


def rules_of(policy: Json) -> list[Rule]:
    """Compiles a policy section. Raises ValueError."""
    found = []
    for pack in policy["packs"]:
        if pack not in PACKS:
            raise ValueError(f"there is no pack {pack}: the packs are {', '.join(PACKS)}")
        found += [_compile(pack, rule) for rule in PACKS[pack]]
    found += [_compile(None, rule) for rule in policy["rules"]]
    ids = [rule.fields["id"] for rule in found]
    if len(set(ids)) != len(ids):
        raise ValueError("two rules have one id")
    return found


def scan(policy: Json, tenant: Json | None, direction: str, text: str, scope: str = "user") -> Json:
    """Judges one text. Raises ValueError."""
    tenant = tenant or {"mode": None, "action": None, "threshold": None, "actions": []}
    matches, score, actions = [], 0, {}
    for rule in rules_of(policy):
        name = rule.fields["id"]
        overrides = [*policy["actions"], *tenant["actions"]]
        action = rule.action(overrides, tenant["action"] or policy["action"], scope)
        if action == "ignore" or rule.fields["target"] not in ("both", direction):
            continue
        seen = text if rule.fields["view"] == "text" else text.lower()
        found = list(rule.pattern.finditer(seen))
        matches += [
            {"rule": name, "action": action, "start": match.start(), "end": match.end()} for match in found
        ]
        if found:
            score += 0 if action in REPLACES else rule.fields["score"]
            actions[name] = action
    blocking = next((name for name, action in actions.items() if action == "block"), None)
    threshold = tenant["threshold"] or policy["threshold"]
    by_score = blocking is None and threshold is not None and score >= threshold
    denied = blocking is not None or by_score
    mildest = "flag" if actions else "allow"
    replaced = next((action for action in REPLACES if action in actions.values()), mildest)
    decision = "block" if denied else replaced
    if decision != "allow" and (tenant["mode"] or policy["mode"]) == "dry_run":
        decision = "flag"
    return {
        "decision": decision,
        "would_block": denied,
        "rule": list(actions)[-1] if by_score else blocking,
        "by_score": by_score,
        "score": score,
        "flagged": score >= (tenant.get("flag_threshold") or policy["flag_threshold"]),
        "matches": matches,
    }


def check(policy: Json, tenant: Json | None, request: Json) -> Json:
    """Judges the messages of a chat request, whose contents are strings. Raises ValueError."""
    messages = []
    for number, message in enumerate(request["messages"]):
        scope = {"tool": "tool_result", "system": "instructions"}.get(message["role"], message["role"])
        text = message["content"]
        judged = scan(policy, tenant, "request", text, scope)
        if judged["matches"]:
            found = [match | {"text": text[match["start"] : match["end"]]} for match in judged["matches"]]
            attacks = [match for match in found if match["rule"].startswith("injection-")]
            from_tool = scope == "tool_result" and judged["flagged"] and attacks != []
            place = {"place": f"messages[{number}]", "scope": scope, "from_tool": from_tool}
            messages.append(judged | place | {"matches": found})
    nothing = scan(policy, tenant, "request", "")
    worst = max(messages, key=lambda judged: (judged["would_block"], judged["score"]), default=nothing)
    names = ("decision", "would_block", "rule", "by_score", "score", "flagged")
    shown = ("place", "scope", "score", "flagged", "from_tool", "decision", "matches")
    return {
        **{name: worst[name] for name in names},
        "message": worst.get("place"),
        "scope": worst.get("scope"),
        "messages": [{name: message[name] for name in shown} for message in messages],
        "sent": None,
    }


def _compile(pack: str | None, rule: Json) -> Rule:
    if rule["regex"] and ("+" in rule["regex"].replace(r"\+", "") or "*" in rule["regex"]):
        raise ValueError(f"rule {rule['id']}: regex: bound its repetitions")
    literals = "|".join(re.escape(literal) for literal in rule["literals"])
    try:
        return Rule(pack, rule, re.compile(rule["regex"] or literals))
    except re.error as error:
        raise ValueError(f"rule {rule['id']}: regex: {error}") from None

"""The policy section: which rules look at prompts and answers, and what follows when one matches."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from proofgate_schema.fields import Listed, Name
from proofgate_schema.section import Section
from pydantic import AfterValidator, Field

Mode = Literal["Enforce", "DryRun"]
Action = Literal["Block", "Redact", "Mask", "Flag"]
OverrideAction = Literal["Block", "Redact", "Mask", "Flag", "Ignore"]
Scope = Literal[
    "Instructions",
    "User",
    "Assistant",
    "ToolDescription",
    "ToolArguments",
    "ToolResult",
    "Other",
    "Answer",
]
Target = Literal["Request", "Response", "Both"]
View = Literal["Folded", "Text"]
Check = Literal["Luhn", "Mod97", "Ssn", "Ipv4", "Entropy", "Mixed", "GitHub", "Jwt"]
Attachments = Literal["ScanText", "Skip"]


def _rule_id(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", text) or len(text) > 64:
        raise ValueError("an id is kebab-case: lower-case letters, digits and single '-', at most 64")
    return text


def _sentence(text: str) -> str:
    if not text.strip() or len(text) > 256 or not text.isprintable():
        raise ValueError("write one line of 1 to 256 characters: clients read it")
    return text


def _entry(text: str) -> str:
    if not text.strip() or len(text) > 256:
        raise ValueError("write 1 to 256 characters, not only blanks")
    return text


def _literal(text: str) -> str:
    if not text or len(text) > 256 or text != text.lower():
        raise ValueError("write 1 to 256 characters in lower case: it is compared with the folded text")
    return text


RuleId = Annotated[str, AfterValidator(_rule_id)]
Threshold = Annotated[int, Field(ge=1, le=100_000)]


class Examples(Section):
    """Texts that `proofgate policy test` tries a rule on."""

    match: Listed[str] = ()
    """Texts that the rule has to match."""
    no_match: Listed[str] = ()
    """Texts that it must not match."""


class Rule(Section):
    """A rule of one's own, with literals, a regex, or both: then a match has to hold one of the literals."""

    id: RuleId
    """Kebab-case, at most 64 characters, unlike every other rule's."""
    reason: Annotated[str, AfterValidator(_sentence)]
    """One sentence that the client is shown, at most 256 characters."""
    target: Target = "Both"
    """Whether prompts, answers or both are looked at."""
    view: View = "Folded"
    """What the regex sees: `Text` as it is; `Folded` in NFKC and lower case, look-alikes as ASCII, white
    space as one blank, words without markup in them."""
    literals: Listed[Annotated[str, AfterValidator(_literal)]] = ()
    """Texts in lower case, looked for in the folded copy."""
    regex: str = ""
    """A regular expression whose longest match is bounded (at most 1024 bytes)."""
    check: Check | None = None
    """A further condition on what the regex matched."""
    score: Annotated[int, Field(ge=0, le=1000)] = 100
    """What a match adds to the score of its message, once, 0 to 1000."""
    action: Action = "Block"
    """What follows from a match."""
    examples: Examples = Examples()
    """What the rule is tested with."""


class ActionOverride(Section):
    """What some rules do instead of what they do by themselves.

    Of several entries for one rule, one that names the rule goes before one that names its pack, then one
    with scopes before one without, then the later one.
    """

    packs: Listed[Name] = ()
    """Packs whose rules are meant. Those that are signs at most flag, whatever the action is; the pack
    `instruction-likeness` can be flagged and ignored only."""
    rules: Listed[RuleId] = ()
    """Ids of rules that are meant."""
    scopes: Listed[Scope] = ()
    """Where they do it; without any: wherever they look."""
    action: OverrideAction
    """What they do; `Ignore`: they do not look there."""


class Allow(Section):
    """What no rule matches."""

    values: Listed[Annotated[str, AfterValidator(_entry)]] = ()
    """Values as they stand, such as a key of a test system."""
    domains: Listed[Annotated[str, AfterValidator(_entry)]] = ()
    """Domains whose mail addresses and URLs, and those of domains below them, only `secrets` matches."""
    patterns: Listed[Annotated[str, AfterValidator(_entry)]] = ()
    """Patterns of mail addresses and URLs that only `secrets` matches; `*` stands for any characters."""


class Policy(Section):
    """The rules of a gateway. Without this section there are none."""

    packs: Listed[Name] = ()
    """Built-in sets of rules; `proofgate policy rules` lists what is in force, and what it does where."""
    mode: Mode = "Enforce"
    """`DryRun` evaluates and reports everything, and blocks and redacts nothing."""
    action: Action | None = None
    """Overrides every rule's own action; signs of packs flag at most."""
    actions: Listed[ActionOverride] = ()
    """Override the actions of some rules, in some scopes."""
    allow: Allow = Allow()
    """What no rule matches."""
    threshold: Threshold | None = None
    """A message whose score reaches it is denied, 1 to 100000; without it no score denies."""
    flag_threshold: Threshold = 50
    """A message whose score reaches it is recorded as flagged, 1 to 100000."""
    budget_milliseconds: Annotated[float, Field(ge=0.1, le=1000, allow_inf_nan=False)] = 10.0
    """Processor time that the rules may take for any text, 0.1 to 1000; beyond it the request is denied."""
    budget_microseconds_per_kibibyte: Annotated[int, Field(ge=1, le=100_000)] = 200
    """Processor time that they may take in addition for every KiB of the text, 1 to 100000."""
    attachments: Attachments = "ScanText"
    """Whether images, recordings and files that decode to text are looked at, or none (`Skip`)."""
    rules: Listed[Rule] = ()
    """Rules of one's own."""


class TenantPolicy(Section):
    """Where the policy for one tenant differs; what is not set is the gateway's."""

    mode: Mode | None = None
    """As `policy.mode`."""
    action: Action | None = None
    """As `policy.action`."""
    actions: Listed[ActionOverride] = ()
    """As `policy.actions`, after those of the gateway. What it ignores in every scope stays ignored."""
    threshold: Threshold | None = None
    """As `policy.threshold`."""
    flag_threshold: Threshold | None = None
    """As `policy.flagThreshold`."""

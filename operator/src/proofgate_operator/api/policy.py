"""The policy of a gateway as frozen models: which rules look at prompts and answers, and what follows."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from proofgate_operator.api.fields import SET, Section, keyed_by, rules


class Pack(StrEnum):
    """The built-in sets of rules."""

    EXFILTRATION = "exfiltration"
    INSTRUCTION_LIKENESS = "instruction-likeness"
    JAILBREAK = "jailbreak"
    OBFUSCATION = "obfuscation"
    PII = "pii"
    PROMPT_INJECTION = "prompt-injection"
    SECRETS = "secrets"


class Mode(StrEnum):
    """Whether a policy acts or only reports."""

    ENFORCE = "Enforce"
    DRY_RUN = "DryRun"


class Action(StrEnum):
    """What follows from a match."""

    BLOCK = "Block"
    REDACT = "Redact"
    MASK = "Mask"
    FLAG = "Flag"


class OverrideAction(StrEnum):
    """What rules do instead of what they do by themselves. `Off` would be a boolean in YAML 1.1."""

    BLOCK = "Block"
    REDACT = "Redact"
    MASK = "Mask"
    FLAG = "Flag"
    IGNORE = "Ignore"


class Scope(StrEnum):
    """What a text is in a conversation."""

    INSTRUCTIONS = "Instructions"
    USER = "User"
    ASSISTANT = "Assistant"
    TOOL_DESCRIPTION = "ToolDescription"
    TOOL_ARGUMENTS = "ToolArguments"
    TOOL_RESULT = "ToolResult"
    OTHER = "Other"
    ANSWER = "Answer"


class Target(StrEnum):
    """What a rule looks at."""

    REQUEST = "Request"
    RESPONSE = "Response"
    BOTH = "Both"


class View(StrEnum):
    """Which copy of a text a regex sees."""

    FOLDED = "Folded"
    TEXT = "Text"


class Check(StrEnum):
    """The built-in conditions on matched text."""

    LUHN = "Luhn"
    MOD97 = "Mod97"
    SSN = "Ssn"
    IPV4 = "Ipv4"
    ENTROPY = "Entropy"
    MIXED = "Mixed"
    GITHUB = "GitHub"
    JWT = "Jwt"


class Attachments(StrEnum):
    """What rules do with attachments."""

    SCAN_TEXT = "ScanText"
    SKIP = "Skip"


RuleId = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
LowerCaseText = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^A-Z]+$")]
Threshold = Annotated[int, Field(ge=1, le=100_000)]
AllowedText = Annotated[str, Field(min_length=1, max_length=256, pattern=r"\S")]


class Rule(Section):
    """A rule of one's own."""

    id: RuleId
    """Kebab-case, unlike every other rule's, also those of the packs in use."""
    reason: Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]+$")]
    """One sentence that the client is shown."""
    target: Target = Target.BOTH
    """Request: prompts. Response: answers. Both."""
    view: View = View.FOLDED
    """What the regex sees. Text: the text as it is. Folded: in NFKC and lower case, look-alikes as ASCII,
    white space as one blank, words without markup in them."""
    literals: Annotated[tuple[LowerCaseText, ...] | None, Field(min_length=1, max_length=32)] = None
    """Texts in lower case, looked for in the folded copy. Beside a regex: a match has to hold one of them."""
    regex: Annotated[str | None, Field(min_length=1, max_length=1024)] = None
    """A regular expression that both Rust's `regex` and Python's `re` read, without flags, anchors and
    look-around. Its longest match is bounded, at most 1024 bytes: {0,80} in place of *. A group
    `(?<value>...)` is what the rule is about: only that is redacted."""
    check: Check | None = None
    """A further condition on what matched."""
    score: Annotated[int, Field(ge=0, le=1000)] = 100
    """What a match adds to the score of its message, once."""
    action: Action = Action.BLOCK
    """Block: the exchange is denied. Redact: the matched text is replaced. Mask: in a request it is
    replaced by a placeholder, which is put back in the answer; an answer is not changed. Flag: it is
    recorded."""


RuleWithSomething = Annotated[
    Rule,
    Field(
        json_schema_extra=rules(
            {
                "rule": "has(self.literals) || has(self.regex)",
                "message": "spec.policy.rules: a rule needs literals, a regex, or both",
            }
        )
    ),
]


class ActionOverride(Section):
    """What some rules do instead of what they do by themselves.

    Of several entries for one rule, one that names the rule goes before one that names its pack, then one
    with scopes before one without, then the later one.
    """

    packs: Annotated[tuple[Pack, ...], Field(max_length=len(Pack), json_schema_extra=SET)] = ()
    """Packs whose rules are meant. Those that are signs at most flag, whatever the action is; the pack
    instruction-likeness can be flagged and ignored only."""
    rules: Annotated[tuple[RuleId, ...], Field(max_length=128, json_schema_extra=SET)] = ()
    """Ids of rules that are meant, from the packs in use or spec.policy.rules."""
    scopes: Annotated[tuple[Scope, ...], Field(max_length=len(Scope), json_schema_extra=SET)] = ()
    """Where they do it. Without any: wherever they look."""
    action: OverrideAction
    """What they do. Ignore: they do not look there."""


OverrideOfSomething = Annotated[
    ActionOverride,
    Field(
        json_schema_extra=rules(
            {
                "rule": "(has(self.packs) && size(self.packs) > 0) || "
                "(has(self.rules) && size(self.rules) > 0)",
                "message": "an entry of actions names packs, rules, or both",
            },
            {
                "rule": "self.action in ['Flag', 'Ignore']"
                " || !((has(self.packs) && 'instruction-likeness' in self.packs)"
                " || (has(self.rules) && 'instruction-likeness' in self.rules))",
                "message": "instruction-likeness is a learned score and can only flag: set action to Flag or"
                " Ignore, or take instruction-likeness out of this entry",
            },
        )
    ),
]


class Allow(Section):
    """What no rule matches."""

    values: Annotated[tuple[AllowedText, ...], Field(max_length=128, json_schema_extra=SET)] = ()
    """Values as they stand, such as a key of a test system."""
    domains: Annotated[tuple[AllowedText, ...], Field(max_length=128, json_schema_extra=SET)] = ()
    """Domains whose mail addresses and URLs, and those of domains below them, only `secrets` matches."""
    patterns: Annotated[tuple[AllowedText, ...], Field(max_length=128, json_schema_extra=SET)] = ()
    """Patterns of mail addresses and URLs that only `secrets` matches. * stands for any characters."""


class Policy(Section):
    """The rules that look at prompts and answers."""

    packs: Annotated[tuple[Pack, ...], Field(max_length=len(Pack), json_schema_extra=SET)] = ()
    """Built-in sets of rules. prompt-injection, jailbreak, exfiltration and obfuscation flag. secrets
    redacts, and blocks live keys of users. pii masks what users and assistants say, and ignores tools.
    instruction-likeness flags by a learned score."""
    mode: Mode = Mode.ENFORCE
    """DryRun: everything is evaluated and recorded, nothing is blocked or redacted."""
    action: Action | None = None
    """Overrides every rule's own action. Signs of packs flag at most."""
    actions: Annotated[tuple[OverrideOfSomething, ...], Field(max_length=32)] = ()
    """Override the actions of some rules, in some scopes."""
    allow: Allow | None = None
    """What no rule matches."""
    threshold: Threshold | None = None
    """A message is denied when the scores of its flagged rules reach this sum. Without it no score denies."""
    flag_threshold: Threshold = 50
    """A message is recorded as flagged when its score reaches this."""
    budget_milliseconds: Annotated[int, Field(ge=1, le=1000)] = 10
    """Processor time that the rules may take for any text; beyond it the exchange is denied."""
    budget_microseconds_per_kibibyte: Annotated[int, Field(ge=1, le=100_000)] = 200
    """Processor time that they may take in addition for every KiB of the text."""
    attachments: Attachments = Attachments.SCAN_TEXT
    """Images, recordings and files in prompts. ScanText: those that hold text are scanned. Skip: none."""
    rules: Annotated[
        tuple[RuleWithSomething, ...], Field(max_length=32, json_schema_extra=keyed_by("id"))
    ] = ()
    """Rules of one's own."""


class TenantPolicy(Section):
    """Where the policy for one tenant differs; what is absent is the gateway's."""

    mode: Mode | None = None
    """As spec.policy.mode."""
    action: Action | None = None
    """As spec.policy.action."""
    actions: Annotated[tuple[OverrideOfSomething, ...], Field(max_length=8)] = ()
    """As spec.policy.actions, after those. What the gateway's policy ignores in every scope stays ignored."""
    threshold: Threshold | None = None
    """As spec.policy.threshold."""
    flag_threshold: Threshold | None = None
    """As spec.policy.flagThreshold."""

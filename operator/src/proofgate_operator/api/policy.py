"""The policy of a gateway as frozen models: which rules look at prompts and answers, and what follows."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from proofgate_operator.api.fields import SET, Section, keyed_by, rules


class Pack(StrEnum):
    """The built-in sets of rules."""

    EXFILTRATION = "exfiltration"
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
    FLAG = "Flag"


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
    look-around. Its longest match is bounded, at most 1024 bytes: {0,80} in place of *."""
    check: Check | None = None
    """A further condition on what matched."""
    score: Annotated[int, Field(ge=0, le=1000)] = 100
    """What a match adds to the score of an exchange, once for each direction."""
    action: Action = Action.BLOCK
    """Block: the exchange is denied. Redact: the matched text is replaced. Flag: it is recorded."""


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


class Policy(Section):
    """The rules that look at prompts and answers."""

    packs: Annotated[tuple[Pack, ...], Field(max_length=len(Pack), json_schema_extra=SET)] = ()
    """Built-in sets of rules."""
    mode: Mode = Mode.ENFORCE
    """DryRun: everything is evaluated and recorded, nothing is blocked or redacted."""
    action: Action | None = None
    """Overrides every rule's own action."""
    threshold: Threshold = 100
    """An exchange is denied when the scores of the rules that matched reach this sum."""
    budget_milliseconds: Annotated[int, Field(ge=1, le=1000)] = 10
    """Processor time that the rules may take for any text; beyond it the exchange is denied."""
    budget_microseconds_per_kibibyte: Annotated[int, Field(ge=1, le=100_000)] = 200
    """Processor time that they may take in addition for every KiB of the text."""
    attachments: Attachments = Attachments.SCAN_TEXT
    """Images, recordings and files in prompts. ScanText: those that hold text are scanned. Skip: none."""
    disabled_rules: Annotated[tuple[RuleId, ...], Field(max_length=128, json_schema_extra=SET)] = ()
    """Ids of rules that are off, from the packs in use or spec.policy.rules."""
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
    threshold: Threshold | None = None
    """As spec.policy.threshold."""
    disabled_rules: Annotated[tuple[RuleId, ...], Field(max_length=32, json_schema_extra=SET)] = ()
    """Ids of rules that are off for this tenant, beside those that the gateway's policy turns off."""

"""The section `policy`: the rules that inspect prompts and responses, and their actions."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from proofgate_schema.annotations import UNIQUE_ITEMS, KubernetesOverride, WorkerOnlyField
from proofgate_schema.fields import WHOLE_NUMBER, Name, TupleOf, file_validator, unique_by
from proofgate_schema.section import Section

Mode = Literal["Enforce", "DryRun"]
Action = Literal["Block", "Redact", "Mask", "Flag"]
#: `Off` would be a boolean in YAML 1.1.
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

#: The built-in sets of rules. A worker gets the rules from its core.
PACKS = (
    "exfiltration",
    "instruction-likeness",
    "jailbreak",
    "obfuscation",
    "pii",
    "prompt-injection",
    "secrets",
)
_SIZE_REASON = "etcd limits the size of an object"


def _max_items(items: int, reason: str = _SIZE_REASON) -> KubernetesOverride:
    return KubernetesOverride(reason, {"maxItems": items})


def _validations(*rules: dict[str, Any]) -> KubernetesOverride:
    return KubernetesOverride("the API server checks CEL rules", {"x-kubernetes-validations": list(rules)})


def _rule_id(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", text) or len(text) > 64:
        raise ValueError(
            "write the id in kebab-case: lower-case letters, digits and single '-', at most 64 characters"
        )
    return text


def _sentence(text: str) -> str:
    if not text.strip() or len(text) > 256 or not text.isprintable():
        raise ValueError("write one line of 1 to 256 characters: clients read it")
    return text


def _allowed_text(text: str) -> str:
    if not text.strip() or len(text) > 256:
        raise ValueError("write 1 to 256 characters, not only blanks")
    return text


def _literal(text: str) -> str:
    if not text or len(text) > 256 or text != text.lower():
        raise ValueError("write 1 to 256 characters in lower case: the text is compared with folded text")
    return text


def _text_constraints(longest: int, pattern: str) -> KubernetesOverride:
    return KubernetesOverride(
        "the API server checks patterns and lengths",
        {"minLength": 1, "maxLength": longest, "pattern": pattern},
    )


Pack = Annotated[
    Name, KubernetesOverride("the API server knows only the packs that the CRD lists", {"enum": list(PACKS)})
]
RuleId = Annotated[str, AfterValidator(_rule_id), _text_constraints(64, r"^[a-z0-9]+(-[a-z0-9]+)*$")]
LowerCaseText = Annotated[str, file_validator(_literal), _text_constraints(128, r"^[^A-Z]+$")]
AllowedText = Annotated[str, file_validator(_allowed_text), _text_constraints(256, r"\S")]
Threshold = Annotated[int, Field(ge=1, le=100_000)]


class Examples(Section):
    """Texts on which `proofgate policy test` tests a rule."""

    match: TupleOf[str] = ()
    """Texts that the rule must match."""
    no_match: TupleOf[str] = ()
    """Texts that the rule must not match."""


class Rule(Section):
    """A custom rule."""

    id: RuleId
    """Id of the rule in kebab-case, unique among all rules, including those of the packs in use."""
    reason: Annotated[str, file_validator(_sentence), _text_constraints(256, r"^[^\x00-\x1f\x7f]+$")]
    """One sentence that the client receives as the reason."""
    target: Target = "Both"
    """Texts that the rule inspects. Request: prompts. Response: responses. Both: prompts and responses."""
    view: View = "Folded"
    """Form of the text to which the regex is applied. Text: the original text. Folded: the text in NFKC and
    lower case, with look-alikes as ASCII, white space as one blank, and markup within words removed."""
    literals: Annotated[
        TupleOf[LowerCaseText],
        KubernetesOverride(
            "a CEL rule checks whether the list has items", {"default": None, "minItems": 1, "maxItems": 32}
        ),
    ] = ()
    """Texts in lower case to search for in the folded text. If the rule also has a regex, a match must
    contain one of these texts."""
    regex: Annotated[str, KubernetesOverride(_SIZE_REASON, {"minLength": 1, "maxLength": 1024})] | None = None
    """A regular expression that both Rust's `regex` and Python's `re` accept, without flags, anchors and
    look-around. A match can have at most 1024 bytes: write {0,80} instead of *. If the expression has a group
    `(?<value>...)`, only the group is redacted."""
    check: Check | None = None
    """An additional check that the matched text must pass. Absent: none."""
    score: Annotated[int, Field(ge=0, le=1000)] = 100
    """Points that the rule adds to a message's score if the rule matches. Several matches count once."""
    action: Action = "Block"
    """Action after a match. Block: the exchange is denied. Redact: the matched text is replaced. Mask: in a
    request, the matched text is replaced by a placeholder, and the response gets the original text back; a
    match in a response changes nothing. Flag: the match is recorded."""
    examples: Annotated[Examples, WorkerOnlyField("`proofgate policy test` reads files")] = Examples()
    """Texts on which `proofgate policy test` tests the rule."""


NonEmptyRule = Annotated[
    Rule,
    _validations(
        {
            "rule": "has(self.literals) || has(self.regex)",
            "message": "spec.policy.rules: a rule needs literals, a regex, or both",
        }
    ),
]


class ActionOverride(Section):
    """A different action for some rules.

    If several entries match a rule, the most specific one applies: one that names the rule before one that
    names its pack, then one with scopes before one without, then the later one.
    """

    packs: Annotated[TupleOf[Pack], UNIQUE_ITEMS, _max_items(len(PACKS), "each once")] = ()
    """Packs with rules that are overridden. If a rule of these packs only flags by default, this field cannot
    give the rule a stronger action. The pack instruction-likeness supports only Flag and Ignore."""
    rules: Annotated[TupleOf[RuleId], UNIQUE_ITEMS, _max_items(128)] = ()
    """Ids of rules that are overridden. The rules are from the packs in use or from `policy.rules`."""
    scopes: Annotated[TupleOf[Scope], UNIQUE_ITEMS, _max_items(8, "each once")] = ()
    """Scopes (kinds of texts) in which the action applies. A rule also inspects scopes of this list that it
    does not inspect by default. Empty: the scopes that the rule inspects by default."""
    action: OverrideAction
    """The action that replaces the rule's own action. Ignore: the rule does not inspect these scopes."""


NonEmptyOverride = Annotated[
    ActionOverride,
    _validations(
        {
            "rule": "(has(self.packs) && size(self.packs) > 0) || (has(self.rules) && size(self.rules) > 0)",
            "message": "an entry of actions must name packs, rules, or both",
        },
        {
            "rule": "self.action in ['Flag', 'Ignore']"
            " || !((has(self.packs) && 'instruction-likeness' in self.packs)"
            " || (has(self.rules) && 'instruction-likeness' in self.rules))",
            "message": "instruction-likeness is a learned score and can only flag: set action to Flag or "
            "Ignore, or remove instruction-likeness from this entry",
        },
    ),
]


class AllowedTexts(Section):
    """Texts that rules do not match."""

    values: Annotated[TupleOf[AllowedText], UNIQUE_ITEMS, _max_items(128)] = ()
    """Exact values that rules do not match, such as a key of a test system."""
    domains: Annotated[TupleOf[AllowedText], UNIQUE_ITEMS, _max_items(128)] = ()
    """Allowed domains, with their subdomains. Rules do not match mail addresses and URLs of these domains,
    except rules of the pack `secrets`."""
    patterns: Annotated[TupleOf[AllowedText], UNIQUE_ITEMS, _max_items(128)] = ()
    """Allowed patterns of mail addresses and URLs. Rules do not match mail addresses and URLs of these forms,
    except rules of the pack `secrets`. A * matches any characters."""


class Policy(Section):
    """The rules that inspect prompts and responses."""

    packs: Annotated[TupleOf[Pack], UNIQUE_ITEMS, _max_items(len(PACKS), "each once")] = ()
    """Built-in sets of rules. The packs prompt-injection, jailbreak, exfiltration and obfuscation flag texts.
    The pack secrets redacts secrets, and blocks live keys in user messages. The pack pii masks personal data
    in texts of users and assistants, and does not inspect texts of tools. The pack instruction-likeness flags
    texts by a learned score."""
    mode: Mode = "Enforce"
    """Enforce: the actions of rules apply. DryRun: everything is evaluated and recorded, but nothing is
    blocked or redacted."""
    action: Action | None = None
    """An action that replaces the action of every rule. If a rule of a pack only flags by default, this field
    cannot give the rule a stronger action. Absent: each rule has its own action."""
    actions: Annotated[TupleOf[NonEmptyOverride], _max_items(32)] = ()
    """Overrides for the actions of some rules, in some scopes."""
    allow: AllowedTexts | None = None
    """Texts that rules do not match. Absent: none."""
    threshold: Threshold | None = None
    """Score at which a message is denied. A message's score is the sum of the points of its flagged rules.
    Absent: no message is denied because of its score."""
    flag_threshold: Threshold = 50
    """Score at which a message is recorded as flagged."""
    budget_milliseconds: Annotated[
        float,
        Field(ge=0.1, le=1000, allow_inf_nan=False),
        WHOLE_NUMBER,
        KubernetesOverride("whole milliseconds", {"type": "integer", "minimum": 1}),
    ] = 10.0
    """Milliseconds of processor time that the rules may take for a text of any length. If they take longer,
    the exchange is denied."""
    budget_microseconds_per_kibibyte: Annotated[int, Field(ge=1, le=100_000)] = 200
    """Additional microseconds of processor time that the rules may take for each KiB of the text."""
    attachments: Attachments = "ScanText"
    """Whether attachments in prompts are inspected: images, audio and other files in base64. ScanText: an
    attachment is inspected only if it is text. Skip: no attachment is inspected."""
    rules: Annotated[TupleOf[NonEmptyRule], unique_by("id"), _max_items(32)] = ()
    """Custom rules."""


class TenantPolicy(Section):
    """The policy of one tenant, where it differs from the gateway's policy. If a field is absent, the
    gateway's policy applies."""

    mode: Mode | None = None
    """Replaces `policy.mode` for the tenant or for the plan's tenants."""
    action: Action | None = None
    """Replaces `policy.action` for the tenant or for the plan's tenants."""
    actions: Annotated[TupleOf[NonEmptyOverride], _max_items(8)] = ()
    """Overrides as in `policy.actions`. They are applied after those of `policy.actions`. A rule that the
    gateway's policy ignores in every scope stays ignored."""
    threshold: Threshold | None = None
    """Replaces `policy.threshold` for the tenant or for the plan's tenants."""
    flag_threshold: Threshold | None = None
    """Replaces `policy.flagThreshold` for the tenant or for the plan's tenants."""

"""The fields that tenants and plans share: permissions and limits."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from proofgate_schema.annotations import NO_DEFAULT, UNIQUE_ITEMS, KubernetesOverride
from proofgate_schema.external_policies import POLICY_NAME
from proofgate_schema.fields import MODEL_NAME_CRD_LIMITS, WHOLE_NUMBER, NonEmptyTupleOf, TupleOf, unique_by
from proofgate_schema.payloads import PayloadMode
from proofgate_schema.policy import TenantPolicy
from proofgate_schema.prices import Dollars
from proofgate_schema.providers import Beta
from proofgate_schema.section import Section

Count = Annotated[int, Field(ge=1, le=1_000_000_000_000)]
HostedTool = Annotated[str, Field(min_length=1, max_length=64, pattern="^[A-Za-z][A-Za-z0-9_.-]*$")]


def _guarded_tool(name: str) -> str:
    """Validate a name; `*` is only allowed at its end, and matches the rest of a name."""
    if len(name) > 128 or not re.fullmatch(r"\*|[A-Za-z0-9_][A-Za-z0-9_.:/-]*\*?", name):
        raise ValueError(
            f"{json.dumps(name)} is not a tool name: write at most 128 letters, digits and _ . : / -, "
            "beginning with a letter, a digit or _. A * at the end matches the rest of a name"
        )
    return name


GuardedTool = Annotated[
    str,
    AfterValidator(_guarded_tool),
    KubernetesOverride(
        "the message of a CEL rule is clearer than that of a pattern",
        {
            "minLength": 1,
            "maxLength": 128,
            "x-kubernetes-validations": [
                {
                    "rule": "self.matches('^([*]|[A-Za-z0-9_][A-Za-z0-9_.:/-]*[*]?)$')",
                    "message": "guardedTools.names: write letters, digits and _ . : / -, beginning with a "
                    "letter, a digit or _; a * at the end matches the rest of a name",
                }
            ],
        },
    ),
]
NOT_EMPTY = KubernetesOverride("an empty list would mean the same as no field", {"minItems": 1})
Endpoint = Literal[
    "ChatCompletions",
    "Completions",
    "Responses",
    "Embeddings",
    "Moderations",
    "ImagesGenerations",
    "AudioSpeech",
    "AudioTranscriptions",
    "AudioTranslations",
    "ImageEdits",
    "ImageVariations",
    "Files",
    "Batches",
    "Messages",
    "GenerateContent",
    "EmbedContent",
    "Models",
    "Receipts",
]


class Quota(Section):
    """Limits on usage. A limit that is absent does not apply."""

    requests_per_minute: Count | None = None
    """Maximum requests that are admitted in a minute."""
    requests_per_day: Count | None = None
    """Maximum requests that are admitted on a UTC day."""
    tokens_per_minute: Count | None = None
    """Maximum tokens of prompts and responses in a minute. Tokens are reserved before a request and settled
    after it."""
    tokens_per_day: Count | None = None
    """Maximum tokens of prompts and responses on a UTC day. Tokens are reserved before a request and settled
    after it."""
    concurrency: Count | None = None
    """Maximum exchanges in flight at the same time."""
    dollars_per_day: Dollars | None = None
    """Maximum cost of exchanges on a UTC day at the prices of their models, in US dollars as text such as
    '25.50'. The cost is reserved before a request and settled after it. With this limit, requests for a model
    without a price are refused."""
    dollars_per_month: Dollars | None = None
    """Maximum cost of exchanges in a UTC month, in US dollars. The rules of dollarsPerDay apply."""

    @property
    def has_budget(self) -> bool:
        """Whether a limit in money is set. Only these limits are text; all others are whole numbers."""
        return any(isinstance(limit, str) for _, limit in self)


class ModelBudget(Section):
    """Budget for one model. A limit that is absent does not apply."""

    model: Annotated[str, MODEL_NAME_CRD_LIMITS]
    """Name of the model, from `models`."""
    dollars_per_day: Dollars | None = None
    """The same limit as limits.dollarsPerDay, but only for this model."""
    dollars_per_month: Dollars | None = None
    """The same limit as limits.dollarsPerMonth, but only for this model."""


class HostedTools(Section):
    """Tools that providers run themselves, such as web search. They cause costs beyond tokens, keep state, or
    access other services."""

    allow: Annotated[TupleOf[HostedTool], Field(max_length=32), UNIQUE_ITEMS] = ()
    """Allowed tools, by their type (Responses, Messages) or their field (Gemini), with or without the date:
    web_search, code_execution_20250825, googleSearch. Other tools are removed from the request, and the
    response names them. If the request has no tool left after that, it is refused."""
    max_calls: Annotated[int, Field(ge=1, le=1000)] = 10
    """Maximum tool calls of a request. It applies if the request sets no maximum and a budget in dollars
    applies. The gateway writes this maximum into the request: max_uses of each tool (Messages) or
    max_tool_calls (Responses)."""
    tokens_per_call: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Prompt tokens to reserve for the result of each tool call when a budget in dollars applies. If the
    results of a request have more tokens, the request can exceed the budget. Absent: the model's maximum
    input, so that no request exceeds the budget."""


class GuardedTools(Section):
    """Tools that the model may not call after the request contains flagged tool text: a result or description
    that rules of prompt-injection, jailbreak, exfiltration or obfuscation flag as instructions."""

    names: Annotated[
        NonEmptyTupleOf[GuardedTool],
        Field(max_length=32),
        UNIQUE_ITEMS,
        KubernetesOverride("the API server checks only lengths", {"minItems": 1}),
    ]
    """Names of the tools as requests declare them, case-insensitive: Bash, mcp__github__*. A `*` at the end
    matches the rest of a name."""
    on_flag: Literal["Refuse", "RequireApproval"] = "Refuse"
    """Treatment of a response that calls a guarded tool. Refuse: the response is not delivered.
    RequireApproval: the response is delivered only if the request has an approval token in the header
    x-proofgate-approve. Otherwise the error contains the token. If the user approves the call, the client
    sends the token with the same request and, for 24 hours, with later ones."""


class Terms(Section):
    """Permissions and limits of a tenant. A plan can set the fields that a tenant leaves out, so the API
    server writes no defaults here."""

    models: (
        Annotated[
            TupleOf[Annotated[str, MODEL_NAME_CRD_LIMITS]],
            UNIQUE_ITEMS,
            KubernetesOverride(
                "the API server limits the cost of CEL rules, which grows with the number of models",
                {"minItems": 1, "maxItems": 32},
            ),
        ]
        | None
    ) = None
    """Models that the tenant may use: names from `models`. Absent: all models."""
    endpoints: (
        Annotated[
            TupleOf[Endpoint], UNIQUE_ITEMS, KubernetesOverride("each once", {"minItems": 1, "maxItems": 18})
        ]
        | None
    ) = None
    """Endpoints that the tenant may call. Absent: all endpoints."""
    hosted_tools: Annotated[HostedTools, NO_DEFAULT] = HostedTools()
    """Tools that providers may run for the tenant. Absent: no tools."""
    guarded_tools: GuardedTools | None = None
    """Tools that the model may not call after a rule has flagged a tool's text in the request. Absent: the
    model may call all tools."""
    denied_betas: Annotated[TupleOf[Beta], Field(max_length=32), UNIQUE_ITEMS, NO_DEFAULT, NOT_EMPTY] = ()
    """Features of Anthropic's API that the tenant may not use, by the names of their betas, with or without
    the date: context-management, effort-2025-11-24. The beta's value in anthropic-beta and the beta's body
    fields are left out together, and the response names them. Absent: all features are allowed."""
    limits: Annotated[Quota, NO_DEFAULT] = Quota()
    """Limits for the tenant as a whole. On Kubernetes they are exact while all connections of the tenant
    reach one worker: see spec.loadBalancer.affinity."""
    key_limits: Annotated[Quota, NO_DEFAULT] = Quota()
    """Limits for each of the tenant's API keys separately."""
    model_budgets: Annotated[
        TupleOf[ModelBudget],
        unique_by("model"),
        NO_DEFAULT,
        NOT_EMPTY,
        KubernetesOverride(
            "the API server limits the cost of CEL rules, which grows with the number of models",
            {"maxItems": 16},
        ),
    ] = ()
    """Budgets for models, for all of the tenant's API keys together. Absent: none."""
    wait_seconds: Annotated[
        float,
        Field(ge=0, le=60),
        WHOLE_NUMBER,
        KubernetesOverride("whole seconds", {"type": "integer"}),
        NO_DEFAULT,
    ] = 5.0
    """Maximum seconds that a request waits for limits. A request waits only if it will fit within the limits
    when other requests release unused reservations. At most 32 requests of a tenant wait at a time. 0: a
    request that does not fit is refused at once. Absent: 5."""
    policy: TenantPolicy | None = None
    """Settings that replace or extend those of `policy` for the tenant or for the plan's tenants. Absent:
    `policy` applies unchanged."""
    policies: Annotated[
        TupleOf[Annotated[str, POLICY_NAME]],
        NO_DEFAULT,
        NOT_EMPTY,
        KubernetesOverride(
            "the API server limits the cost of CEL rules, which grows with the number of policies",
            {"maxItems": 8},
        ),
    ] = ()
    """Names of policies from `policies`. They evaluate the tenant's requests in this order, after the rules
    have allowed the requests. Absent: none."""
    payloads: PayloadMode | None = None
    """Whether the tenant's requests and responses are stored. Absent: `ledger.payloads.mode` applies."""

    def to_document(self) -> dict[str, Any]:
        """Return the section in the form of a file or a manifest, with only the fields that are set, so that
        a plan can set the others."""
        fields = type(self).model_fields
        names = {fields[name].alias for name in self.model_fields_set}
        return {name: value for name, value in super().to_document().items() if name in names}


#: The fields of a plan, with their names in manifests.
TERM_FIELDS = tuple(field.alias or "" for field in Terms.model_fields.values())

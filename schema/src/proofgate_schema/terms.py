"""Parts of what tenants and plans have: how much may be used, and which tools."""

from __future__ import annotations

import json
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from proofgate_schema.annotations import SET, Kubernetes
from proofgate_schema.fields import MODEL_NAME, Listed, NonEmptyListed
from proofgate_schema.prices import Dollars
from proofgate_schema.section import Section

Count = Annotated[int, Field(ge=1, le=1_000_000_000_000)]
HostedTool = Annotated[str, Field(min_length=1, max_length=64, pattern="^[A-Za-z][A-Za-z0-9_.-]*$")]


def _guarded_tool(name: str) -> str:
    """`*` stands at the end alone, for the rest of a name."""
    if len(name) > 128 or not re.fullmatch(r"\*|[A-Za-z0-9_][A-Za-z0-9_.:/-]*\*?", name):
        raise ValueError(
            f"{json.dumps(name)} is no name of a tool: write a letter, a digit or _, then more of these and"
            " . : / -, at most 128 characters. A * at the end stands for the rest of a name"
        )
    return name


GuardedTool = Annotated[
    str,
    AfterValidator(_guarded_tool),
    Kubernetes(
        "a rule has a message in plain words",
        {
            "minLength": 1,
            "maxLength": 128,
            "x-kubernetes-validations": [
                {
                    "rule": "self.matches('^([*]|[A-Za-z0-9_][A-Za-z0-9_.:/-]*[*]?)$')",
                    "message": "guardedTools.names: a name is a letter, a digit or _, then more of these and"
                    " . : / -; a * at the end stands for the rest of a name",
                }
            ],
        },
    ),
]
DeniedBeta = Annotated[str, Field(min_length=1, max_length=64, pattern="^[a-z0-9][-a-z0-9]*$")]


class Quota(Section):
    """How much may be used; what is absent is not limited."""

    requests_per_minute: Count | None = None
    """Requests that are admitted in a minute."""
    tokens_per_minute: Count | None = None
    """Tokens of prompts and answers in a minute; reserved before a request, settled after it."""
    tokens_per_day: Count | None = None
    """The same, in a day."""
    concurrency: Count | None = None
    """Exchanges in flight at the same time."""
    dollars_per_day: Dollars | None = None
    """What exchanges cost on a UTC day, in US dollars as text such as '25.50', by the prices of their models;
    reserved before a request, settled after it. A model without a price is refused then."""
    dollars_per_month: Dollars | None = None
    """The same, in a UTC month."""


class ModelBudget(Section):
    """What may be spent on one model; what is absent is not limited."""

    model: Annotated[str, MODEL_NAME]
    """The name of a model, one of `models`."""
    dollars_per_day: Dollars | None = None
    """As in limits."""
    dollars_per_month: Dollars | None = None
    """As in limits."""


class HostedTools(Section):
    """Tools that upstreams run themselves, such as a search of the web: they cost what no token counts, keep
    state or reach outside."""

    allow: Annotated[Listed[HostedTool], Field(max_length=32), SET] = ()
    """Those that may be used, by their type (Responses, Messages) or their field (Gemini), with or without
    the date behind it: web_search, code_execution_20250825, googleSearch. Others are left out of a request
    and named in the answer, or the request is refused if it has no other tool."""
    max_calls: Annotated[int, Field(ge=1, le=1000)] = 10
    """How often they may be called where a budget in money counts and the request does not say it: written
    into it as max_uses of each tool (Messages) or max_tool_calls (Responses)."""
    tokens_per_call: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Tokens that a call is taken to bring into the prompt when a budget in money reserves: what the results
    of one request bring beyond may pass the budget. Absent: as many as the model takes, so that nothing
    passes it."""


class GuardedTools(Section):
    """Tools that the model may not call once the request holds a text of a tool that reads like instructions:
    a result or description that rules of prompt-injection, jailbreak, exfiltration or obfuscation flag."""

    names: Annotated[
        NonEmptyListed[GuardedTool],
        Field(max_length=32),
        SET,
        Kubernetes("an API server knows lengths alone", {"minItems": 1}),
    ]
    """Their names as requests declare them, whatever their case: Bash, mcp__github__*. `*` at the end stands
    for the rest of a name."""
    on_flag: Literal["Refuse", "RequireApproval"] = "Refuse"
    """What becomes of an answer that calls one. Refuse: it is not delivered. RequireApproval: not without an
    approval, which the error names and x-proofgate-approve of the next requests carries."""

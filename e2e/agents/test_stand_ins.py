"""The stand-ins refuse what the real providers refuse, with the same error messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from e2e.agents.stand_ins import (
    anthropic_messages,
    bedrock_converse,
    bedrock_invoke,
    google_generate,
    openai_chat,
    openai_responses,
)
from e2e.agents.stand_ins.script import Refusal, ask_a_server
from suites.steps import ROOT

pytestmark = pytest.mark.sample

HI = {"role": "user", "content": "hi"}
CLAUDE: dict[str, Any] = {"model": "claude-sonnet-4-5", "max_tokens": 4096, "messages": [HI]}
CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
TOOL_USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {}}]}
TOOL_RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}
THINKING = {"type": "enabled", "budget_tokens": 2048}
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
OPEN = {"type": "object", "properties": {"path": {"type": "string"}}}
GEMINI_CALL = {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]}
GEMINI_HI = {"role": "user", "parts": [{"text": "hi"}]}
CONVERSE_CALL = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "read", "input": {}}}]}


def of_anthropic(body: dict[str, Any]) -> None:
    anthropic_messages.check({**CLAUDE, **body}, {"anthropic-version": "2023-06-01"})


def of_chat(body: dict[str, Any]) -> None:
    openai_chat.check({"model": "gpt-5.1", "messages": [HI], **body}, {})


def of_responses(body: dict[str, Any]) -> None:
    openai_responses.check({"model": "gpt-5.5", "input": "hi", **body}, {})


def of_google(body: dict[str, Any]) -> None:
    google_generate.check({"contents": [GEMINI_HI], **body}, {}, "gemini-3-pro-preview")


def of_converse(body: dict[str, Any]) -> None:
    hi = {"role": "user", "content": [{"text": "hi"}]}
    model = body.pop("model", "us.anthropic.claude")
    bedrock_converse.check({"messages": [hi, *body.pop("more", [])], **body}, {}, model)


def of_invoke(body: dict[str, Any]) -> None:
    bedrock_invoke.check({"max_tokens": 4096, "messages": [HI], **body}, {}, "us.anthropic.claude")


@pytest.mark.parametrize(
    ("check", "body", "words"),
    [
        (of_anthropic, {"context_management": {}}, "context_management: Extra inputs are not permitted"),
        (of_anthropic, {"messages": [HI, TOOL_USE, HI]}, "`tool_use` ids were found without `tool_result` blocks"),
        (of_anthropic, {"messages": [HI, TOOL_RESULT]}, "unexpected `tool_use_id` found in `tool_result` blocks"),
        (of_anthropic, {"thinking": THINKING, "messages": [HI, TOOL_USE, TOOL_RESULT]}, "Expected `thinking`"),
        (of_anthropic, {"thinking": THINKING, "max_tokens": 1024}, "`max_tokens` must be greater"),
        (of_anthropic, {"temperature": 0.5, "top_p": 0.5}, "cannot both be specified"),
        (of_anthropic, {"output_config": {"effort": "high"}}, "does not support the effort parameter"),
        (of_chat, {"max_tokens": 10}, "'max_tokens' is not supported with this model"),
        (
            of_chat,
            {"messages": [{"role": "assistant", "tool_calls": [CALL]}]},
            "did not have response messages: call_1",
        ),
        (
            of_chat,
            {"messages": [{**HI, "reasoning_details": []}]},
            "Unknown parameter: 'messages[0].reasoning_details'",
        ),
        (of_chat, {"reasoning_effort": "xhigh"}, "'xhigh' is not supported with the 'gpt-5.1' model"),
        (of_responses, {"input": [{"type": "item_reference", "id": "rs_1"}], "store": False}, "not persisted"),
        (of_responses, {"tools": [{"type": "function", "name": "read", "strict": True, "parameters": OPEN}]}, "false."),
        (of_responses, {"input": [{"type": "function_call", "call_id": "call_1"}]}, "No tool output found"),
        (of_responses, {"input": [{"type": "tool_search_call", "call_id": "call_1"}]}, "No tool output found"),
        (of_google, {"contents": [GEMINI_HI, GEMINI_CALL]}, "missing a thought_signature"),
        (of_google, {"generationConfig": {"frequencyPenalty": 1}}, "Penalty is not enabled"),
        (of_google, {"store_": 1}, 'Unknown name "store_"'),
        (of_converse, {"more": [CONVERSE_CALL]}, "The toolConfig field must be defined"),
        (of_converse, {"more": [{"role": "user", "content": [{"text": "x"}]}]}, "must alternate"),
        (of_invoke, {}, "anthropic_version: Input should be"),
    ],
)
def test_a_request_that_the_provider_refuses_is_refused(
    check: Callable[[dict[str, Any]], None], body: dict[str, Any], words: str
) -> None:
    with pytest.raises(Refusal) as refused:
        check(body)
    assert words in refused.value.message


#: For each constraint in the gateway's table, a request that a model with this constraint refuses.
REFUSED_BY_CONSTRAINT: dict[str, Callable[[], None]] = {
    "MaxCompletionTokens": lambda: of_chat({"model": "o3", "max_tokens": 10}),
    "ToolsWithoutEffort": lambda: of_chat({"model": "gpt-5.4", "tools": [TOOL], "reasoning_effort": "low"}),
    "ReasonsByDefault": lambda: of_chat({"model": "gpt-5.5", "tools": [TOOL]}),
    "ResponsesOnly": lambda: of_chat({"model": "gpt-5-codex"}),
    "EffortLevels": lambda: of_responses({"model": "gpt-5.1", "reasoning": {"effort": "xhigh"}}),
    "ThinkingBudget": lambda: of_anthropic({"model": "claude-haiku-4-5", "output_config": {"effort": "low"}}),
    "NoThinking": lambda: of_anthropic({"model": "claude-3-haiku-20240307", "thinking": THINKING}),
    "SignedCalls": lambda: of_google({"contents": [GEMINI_HI, GEMINI_CALL]}),
    "OneOfTemperatureAndTopP": lambda: of_converse(
        {"model": "anthropic.claude-haiku-4-5-v1:0", "inferenceConfig": {"temperature": 0.5, "topP": 0.5}}
    ),
    "DefaultSampling": lambda: of_anthropic({"model": "claude-opus-4-8", "top_p": 0.5}),
    "NoStop": lambda: of_chat({"model": "o3", "stop": "END"}),
    "NoPenalties": lambda: of_google({"generationConfig": {"presencePenalty": 1}}),
}


@pytest.mark.parametrize("name", REFUSED_BY_CONSTRAINT)
def test_what_the_table_says_of_a_model_is_refused(name: str) -> None:
    with pytest.raises(Refusal):
        REFUSED_BY_CONSTRAINT[name]()


def test_every_constraint_of_the_table_is_refused_by_a_stand_in() -> None:
    table = (ROOT / "rust-core/crates/dialect/src/constraints/row.rs").read_text()
    listed = re.search(r"pub enum Constraint \{(.*?)\n\}", table, re.DOTALL)
    assert listed is not None
    assert set(re.findall(r"^    ([A-Z]\w+)[,(]", listed[1], re.MULTILINE)) == REFUSED_BY_CONSTRAINT.keys()


def test_a_model_that_the_table_does_not_name_takes_everything() -> None:
    of_chat({"model": "gpt-4o", "max_tokens": 10, "stop": "END", "temperature": 0.5})
    of_anthropic({"model": "claude-opus-9", "output_config": {"effort": "max"}, "temperature": 0.5, "top_p": 0.5})


def test_a_request_that_the_provider_takes_is_taken() -> None:
    of_anthropic({"messages": [HI, TOOL_USE, TOOL_RESULT]})
    of_chat({"max_completion_tokens": 10, "reasoning_effort": "high"})
    of_responses({"reasoning": {"effort": "high"}, "store": False})
    of_google({"contents": [GEMINI_HI], "generationConfig": {"temperature": 1}})
    of_invoke({"anthropic_version": bedrock_invoke.VERSION})


def test_a_model_calls_what_its_search_of_tools_found_in_the_namespace_that_it_is_in() -> None:
    search = {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}}
    read = {"type": "function", "name": "read_file", "parameters": {}}
    script = ask_a_server("keeper_of", {"light": "north end"})

    def item(*found: dict[str, Any]) -> dict[str, Any]:
        body = {"model": "gpt-5.5", "input": [HI, *found], "tools": [read, search]}
        answer: dict[str, Any] = openai_responses.whole("gpt-5.5", script(openai_responses.asked(body)))["output"][0]
        return answer

    call = item()
    assert (call["type"], call["arguments"]) == ("tool_search_call", {"query": "keeper_of"})
    keeper = {"type": "namespace", "name": "mcp__lighthouse", "tools": [{"type": "function", "name": "keeper_of"}]}
    call = item(call, {"type": "tool_search_output", "call_id": call["call_id"], "tools": [keeper]})
    assert (call["name"], call["namespace"]) == ("keeper_of", "mcp__lighthouse")

"""Anthropic's Messages API: its refusals and answers.

Sources: platform.claude.com (API reference, Extended thinking, Effort, Tool use: troubleshooting, Structured outputs).
The error messages are quoted from clients' bug reports (anthropics/claude-code#21612, #5989;
tghamm/Anthropic.SDK#184), or follow the documentation's wording of the rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from e2e.agents.stand_ins.known_models import known
from e2e.agents.stand_ins.schemas import strict_fault
from e2e.agents.stand_ins.script import Asked, Json, Move, Refusal, new_id, pieces

#: The parts of a thought that the API requires back unchanged.
SIGNATURE = "c2lnbmVkLWJ5LXRoZS1tb2RlbA=="
#: Body fields that need a beta header, with its value (Anthropic, "Beta headers"; anthropics/claude-code#21612).
OF_A_BETA = {
    "context_management": "context-management-",
    "mcp_servers": "mcp-client-",
    "container": "code-execution-",
    "fallbacks": "fallback",
    "speed": "fast-mode-",
}
FIELDS = {
    "cache_control", "inference_geo", "max_tokens", "messages", "metadata", "model", "output_config", "service_tier",
    "stop_sequences", "stream", "system", "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
    "diagnostics", *OF_A_BETA,
}  # fmt: skip
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
PICTURES = {"image/jpeg", "image/png", "image/gif", "image/webp"}


def blocks(message: Json) -> list[Json]:
    """The blocks of a message; none if its content is a text."""
    content = message.get("content")
    return content if isinstance(content, list) else []


def check(body: Json, headers: Mapping[str, str]) -> None:
    """Raises Refusal for a request that the API refuses."""
    if "anthropic-version" not in headers:
        raise Refusal("anthropic-version: header is required")
    betas = headers.get("anthropic-beta", "")
    for name in body:
        if name not in FIELDS or (name in OF_A_BETA and OF_A_BETA[name] not in betas):
            raise Refusal(f"{name}: Extra inputs are not permitted")
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            raise Refusal(f"{name}: Field required")
    _check_sampling(body)
    _check_tools(body)
    _check_messages(body["messages"])
    if _thinks(body):
        # With adaptive thinking a turn may begin without a thought ("Adaptive thinking: validation changes").
        _check_thoughts(body["messages"], whole_turns=body["thinking"]["type"] == "enabled")
    marks = json.dumps(body).count('"cache_control": {')
    if marks > 4:
        raise Refusal(f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")


def _thinks(body: Json) -> bool:
    return body.get("thinking", {}).get("type") in ("enabled", "adaptive")


def _check_sampling(body: Json) -> None:
    model = str(body["model"])
    about = known(model)
    if "temperature" in body and "top_p" in body and "OneOfTemperatureAndTopP" in about:
        raise Refusal("`temperature` and `top_p` cannot both be specified for this model. Please use only one.")
    config = body.get("output_config", {})
    has_effort = "ThinkingBudget" not in about and "NoThinking" not in about
    if "effort" in config and not has_effort:
        raise Refusal("This model does not support the effort parameter.")
    if about.levels and config.get("effort", about.levels[0]) not in about.levels:
        raise Refusal(f"This model does not support effort level '{config['effort']}'. "
                      f"Supported levels: {', '.join(about.levels)}.")  # fmt: skip
    if "DefaultSampling" in about and {"temperature", "top_p", "top_k"} & set(body):
        raise Refusal(f"`{sorted({'temperature', 'top_p', 'top_k'} & set(body))[0]}` is deprecated for this model.")
    if config.get("format"):
        fault = strict_fault(config["format"].get("schema", {}), needs_all=False)
        if fault:
            raise Refusal(f"output_config.format.schema: {fault}")
    if not _thinks(body):
        return
    if "NoThinking" in about:
        raise Refusal(f"'{model}' does not support thinking.")
    if body["thinking"]["type"] == "adaptive" and not has_effort:
        raise Refusal("adaptive thinking is not supported on this model")
    if body["thinking"].get("budget_tokens", 0) >= body["max_tokens"]:
        raise Refusal(
            "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at "
            "https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size"
        )
    if body["thinking"]["type"] == "enabled" and body["thinking"].get("budget_tokens", 0) < 1024:
        raise Refusal("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    if body.get("temperature", 1) != 1:
        raise Refusal("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.")
    if body.get("tool_choice", {}).get("type") in ("any", "tool"):
        raise Refusal("Thinking may not be enabled when tool_choice forces tool use.")


def _check_tools(body: Json) -> None:
    names = [str(tool.get("name")) for tool in body.get("tools", []) if tool.get("type") != "mcp_toolset"]
    for place, (name, tool) in enumerate(zip(names, body.get("tools", []), strict=False)):
        if not NAME.fullmatch(name):
            raise Refusal(f"tools.{place}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if tool.get("type", "custom") != "custom":
            continue
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise Refusal(f"tools.{place}.custom.input_schema.type: Field required")
        if {"oneOf", "allOf", "anyOf"} & set(schema):
            raise Refusal(
                f"tools.{place}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top "
                "level"
            )
        fault = strict_fault(schema, needs_all=False) if tool.get("strict") else None
        if fault:
            raise Refusal(f"tools.{place}.custom: {fault}")
    if len(set(names)) != len(names):
        raise Refusal("tools: Tool names must be unique.")


def _check_messages(messages: list[Json]) -> None:
    if not messages:
        raise Refusal("messages: at least one message is required")
    for index, message in enumerate(messages):
        if message.get("role") not in ("user", "assistant"):
            raise Refusal(
                f'messages: Unexpected role "{message.get("role")}". Allowed roles are "user" or "assistant".'
            )
        last = index == len(messages) - 1
        if message.get("content") in ("", []) and not (last and message["role"] == "assistant"):
            raise Refusal(f"messages.{index}: all messages must have non-empty content")
        for place, block in enumerate(blocks(message)):
            _check_block(block, f"messages.{index}.content.{place}")
        called = {block["id"] for block in blocks(message) if block.get("type") == "tool_use"}
        after = blocks(messages[index + 1]) if not last else []
        missing = called - {block.get("tool_use_id") for block in after if block.get("type") == "tool_result"}
        if missing:
            raise Refusal(
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(sorted(missing))}. Each `tool_use` block must have a corresponding `tool_result` block in "
                "the next message."
            )
        before = {block.get("id") for block in (blocks(messages[index - 1]) if index else [])}
        for place, block in enumerate(blocks(message)):
            if block.get("type") == "tool_result" and block["tool_use_id"] not in before:
                raise Refusal(
                    f"messages.{index}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{block['tool_use_id']}. Each `tool_result` block must have a corresponding `tool_use` block in "
                    "the previous message."
                )


def _check_block(block: Json, place: str) -> None:
    kind = block.get("type")
    if kind == "text" and not str(block.get("text", "")).strip():
        words = "contain non-whitespace text" if block.get("text") else "be non-empty"
        raise Refusal(f"messages: text content blocks must {words}")
    if kind in ("image", "document") and block["source"]["type"] == "base64":
        media = block["source"].get("media_type")
        if media not in (PICTURES if kind == "image" else {"application/pdf"}):
            raise Refusal(f"{place}.{kind}.source.base64.media_type: Input should be 'image/jpeg', 'image/png', …")
    if kind == "tool_result":
        for inner, part in enumerate(blocks(block)):
            _check_block(part, f"{place}.tool_result.content.{inner}")


def _check_thoughts(messages: list[Json], whole_turns: bool) -> None:
    for index, message in enumerate(messages):
        for place, block in enumerate(blocks(message)):
            if block.get("type") == "thinking" and block.get("signature") != SIGNATURE:
                raise Refusal(f"messages.{index}.content.{place}: Invalid `signature` in `thinking` block")
    if not whole_turns:
        return
    results = [block for block in blocks(messages[-1]) if block.get("type") == "tool_result"]
    before = blocks(messages[-2]) if results else []
    if before and before[0].get("type") not in ("thinking", "redacted_thinking"):
        raise Refusal(
            f"messages.{len(messages) - 2}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{before[0].get('type')}`. When `thinking` is enabled, a final `assistant` message must start with a "
            "thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
        )


def asked(body: Json) -> Asked:
    """The request in the form that all APIs share."""
    seen = Asked(str(body["model"]), bool(body.get("stream")), thinks=_thinks(body))
    seen.tools = {tool["name"]: tool["input_schema"] for tool in body.get("tools", []) if "input_schema" in tool}
    for message in body["messages"]:
        given = blocks(message)
        answers = [block for block in given if block.get("type") == "tool_result"]
        if message["role"] == "user" and not answers:
            seen.results = []
        for block in [*given, *(part for answer in answers for part in blocks(answer))]:
            if block.get("type") in ("image", "document"):
                seen.media.append(block["source"].get("media_type", block["source"]["type"]))
        seen.results += [_text(answer.get("content")) for answer in answers]
    return seen


def _text(content: Any) -> str:
    parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    return " ".join(str(part["text"]) for part in parts if part.get("type") == "text")


def _written(move: Move) -> list[tuple[Json, list[Json]]]:
    """The blocks of an answer: the start of each, and its pieces."""
    found: list[tuple[Json, list[Json]]] = []
    if move.thought:
        thought = [
            {"type": "thinking_delta", "thinking": move.thought},
            {"type": "signature_delta", "signature": SIGNATURE},
        ]
        found.append(({"type": "thinking", "thinking": "", "signature": ""}, thought))
    if move.text:
        texts = [{"type": "text_delta", "text": text} for text in pieces(move.text)]
        found.append(({"type": "text", "text": ""}, texts))
    for call in move.calls:
        start = {"type": "tool_use", "id": new_id("toolu"), "name": call.name, "input": {}}
        found.append((start, [{"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}]))
    return found


def _usage(output: int) -> Json:
    return {"input_tokens": 1000, "output_tokens": output}


def events(model: str, move: Move) -> Iterator[Json]:
    """The events of a stream."""
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    yield {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None, "usage": _usage(1)}}
    for index, (block, deltas) in enumerate(_written(move)):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if move.calls else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": _usage(50)}
    yield {"type": "message_stop"}


def stream(model: str, move: Move) -> Iterator[bytes]:
    """The stream, one event at a time."""
    for event in events(model, move):
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def whole(model: str, move: Move) -> Json:
    """The whole answer."""
    content: list[Json] = []
    for block, deltas in _written(move):
        filled = dict(block)
        for delta in deltas:
            for name in ("text", "thinking", "signature"):
                if name in delta:
                    filled[name] = filled[name] + delta[name]
            if "partial_json" in delta:
                filled["input"] = json.loads(delta["partial_json"])
        content.append(filled)
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content}
    reason = "tool_use" if move.calls else "end_turn"
    return {**head, "stop_reason": reason, "stop_sequence": None, "usage": _usage(50)}


KINDS = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
#: The error messages of a rate limit and an overload.
LIMITED = (429, "This request would exceed your organization's rate limit of 50 requests per minute.")
OVERLOADED = (529, "Overloaded")


def error(status: int, message: str, kind: str | None) -> Json:
    """The body of an error."""
    words = {"type": kind or KINDS.get(status, "invalid_request_error"), "message": message}
    return {"type": "error", "error": words, "request_id": "req_1"}

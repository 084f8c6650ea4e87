"""OpenAI's Responses API: its refusals and answers.

Sources: OpenAI's API reference (Responses), "Reasoning: keeping reasoning items in context", openai 3.57 (ToolParam).
The error messages are quoted from clients' bug reports (vercel/ai#7543, continuedev/continue#9101), or follow the
documentation's wording of the rule.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from e2e.agents.stand_ins.known_models import known
from e2e.agents.stand_ins.openai_chat import (
    KINDS,
    LIMITED,
    OVERLOADED,
    check_effort,
    check_sampling,
    error,
    media_type,
)
from e2e.agents.stand_ins.schemas import strict_fault
from e2e.agents.stand_ins.script import SEARCH, Asked, Call, Json, Move, Refusal, new_id, pieces

__all__ = ["KINDS", "LIMITED", "OVERLOADED", "asked", "check", "error", "stream", "whole"]

#: The part of a thought that the API requires back unchanged.
ENCRYPTED = "gAAAAABsaWdodGhvdXNl"
FIELDS = {
    "background", "client_metadata", "context_management", "conversation", "include", "input", "instructions",
    "max_output_tokens", "max_tool_calls", "metadata", "model", "moderation", "parallel_tool_calls",
    "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning",
    "safety_identifier", "service_tier", "store", "stream", "stream_options", "temperature", "text", "tool_choice",
    "tools", "top_logprobs", "top_p", "truncation", "user",
}  # fmt: skip
TOOLS = {
    "apply_patch", "code_interpreter", "computer", "custom", "file_search", "function", "image_generation",
    "local_shell", "mcp", "namespace", "shell", "tool_search", "web_search", "web_search_preview",
}  # fmt: skip
FOUND = "tool_search_output"
OUTPUTS = {
    "function_call_output": "function_call",
    "custom_tool_call_output": "custom_tool_call",
    FOUND: "tool_search_call",
}


def items(body: Json) -> list[Json]:
    """The items of the input; a text is a message."""
    given = body.get("input", [])
    return given if isinstance(given, list) else [{"role": "user", "content": given}]


def check(body: Json, headers: Mapping[str, str]) -> None:
    """Raises Refusal for a request that the API refuses."""
    del headers
    for name in body:
        if name not in FIELDS:
            raise Refusal(f"Unknown parameter: '{name}'.")
    model = str(body.get("model"))
    check_effort(model, "reasoning.effort", (body.get("reasoning") or {}).get("effort"))
    if "DefaultSampling" in known(model):
        check_sampling(body)
    for place, tool in enumerate(body.get("tools") or []):
        if tool.get("type") not in TOOLS:
            raise Refusal(f"Invalid value: '{tool.get('type')}' at tools[{place}].type.")
        fault = strict_fault(tool.get("parameters", {}), needs_all=True) if tool.get("strict") else None
        if fault:
            raise Refusal(f"Invalid schema for function '{tool.get('name')}': {fault}")
    _check_items(items(body), bool(body.get("store", True)))


def _check_items(given: list[Json], stored: bool) -> None:
    called: dict[str, str] = {}
    answered: set[str] = set()
    for place, item in enumerate(given):
        kind = str(item.get("type", "message"))
        if kind == "item_reference" and not stored:
            raise Refusal(
                f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false. Try "
                "again with `store` set to true, or remove this item from your input.",
                404,
            )
        if kind in OUTPUTS.values():
            called[item["call_id"]] = kind
        if kind in OUTPUTS:
            if called.get(item["call_id"]) != OUTPUTS[kind]:
                raise Refusal(f"No tool call found for function call output with call_id {item['call_id']}.")
            answered.add(item["call_id"])
        if kind == "reasoning":
            if item.get("encrypted_content") not in (None, ENCRYPTED):
                raise Refusal(f"The encrypted content for item {item.get('id')} could not be verified.")
            if place + 1 == len(given) or given[place + 1].get("role") == "user":
                raise Refusal(
                    f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
                )
    missing = set(called) - answered
    if missing:
        raise Refusal(f"No tool output found for function call {sorted(missing)[0]}.")


def _parts(content: Any) -> list[Json]:
    return content if isinstance(content, list) else []


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return " ".join(str(part.get("text", "")) for part in _parts(content)).strip()


def _offered(seen: Asked, tools: list[Json], namespace: str | None = None) -> None:
    """Adds the functions that the client runs itself, those of its namespaces, and its search for more functions."""
    for tool in tools:
        if tool.get("type") == "function":
            seen.tools[tool["name"]] = tool.get("parameters") or {}
            if namespace is not None:
                seen.namespaces[tool["name"]] = namespace
        elif tool.get("type") == "namespace":
            _offered(seen, tool.get("tools") or [], tool["name"])
        elif tool.get("type") == SEARCH and tool.get("execution") == "client":
            seen.tools[SEARCH] = tool.get("parameters") or {}


def asked(body: Json) -> Asked:
    """The request in the form that all APIs share."""
    seen = Asked(str(body["model"]), bool(body.get("stream")), thinks=bool(body.get("reasoning")))
    _offered(seen, body.get("tools") or [])
    for item in items(body):
        content = item.get("output") if item.get("type") in OUTPUTS else item.get("content")
        for part in _parts(content):
            if part.get("type") == "input_image":
                seen.media.append(media_type(part["image_url"]))
            elif part.get("type") == "input_file":
                seen.media.append(media_type(part.get("file_data", "")))
        if item.get("type") == FOUND:
            _offered(seen, item.get("tools") or [])
        elif item.get("type") in OUTPUTS:
            seen.results.append(_text(content))
        elif item.get("role") == "user":
            seen.results = []
    return seen


def _items(move: Move) -> list[Json]:
    found: list[Json] = []
    if move.thought:
        summary = [{"type": "summary_text", "text": move.thought}]
        found.append({"type": "reasoning", "id": new_id("rs"), "summary": summary, "encrypted_content": ENCRYPTED})
    if move.text:
        content = [{"type": "output_text", "text": move.text, "annotations": [], "logprobs": []}]
        found.append(
            {"type": "message", "id": new_id("msg"), "status": "completed", "role": "assistant", "content": content}
        )
    return [*found, *(_call(call) for call in move.calls)]


def _call(call: Call) -> Json:
    item: Json = {"type": "function_call", "id": new_id("fc"), "call_id": new_id("call"), "status": "completed"}
    if call.name == SEARCH:
        return {**item, "type": "tool_search_call", "execution": "client", "arguments": call.arguments}
    named = {"name": call.name, "namespace": call.namespace} if call.namespace else {"name": call.name}
    return {**item, **named, "arguments": json.dumps(call.arguments)}


def _response(model: str, output: list[Json], status: str) -> Json:
    usage = {
        "input_tokens": 1000,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 1050,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage if status == "completed" else None,
    }


def stream(model: str, move: Move) -> Iterator[bytes]:
    """The stream, one event at a time."""
    output = _items(move)
    for number, event in enumerate(_events(model, output)):
        numbered = {**event, "sequence_number": number}
        yield f"event: {event['type']}\ndata: {json.dumps(numbered)}\n\n".encode()


def _events(model: str, output: list[Json]) -> Iterator[Json]:
    yield {"type": "response.created", "response": _response(model, [], "in_progress")}
    emptied: dict[str, Json] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "reasoning": {"summary": []},
        "tool_search_call": {},
    }
    for index, item in enumerate(output):
        begun = {**item, "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": {**begun, **emptied[item["type"]]}}
        yield from _inner({"output_index": index, "item_id": item["id"]}, item)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": _response(model, output, "completed")}


def _inner(at: Json, item: Json) -> Iterator[Json]:
    if item["type"] == "message":
        part, at = item["content"][0], {**at, "content_index": 0}
        yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": part}
    elif item["type"] == "function_call":
        yield {"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]}
        yield {
            "type": "response.function_call_arguments.done",
            **at,
            "arguments": item["arguments"],
            "name": item["name"],
        }
    elif item["type"] == "reasoning":
        part, at = item["summary"][0], {**at, "summary_index": 0}
        yield {"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}}
        yield {"type": "response.reasoning_summary_text.delta", **at, "delta": part["text"]}
        yield {"type": "response.reasoning_summary_text.done", **at, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **at, "part": part}


def whole(model: str, move: Move) -> Json:
    """The whole answer."""
    return _response(model, _items(move), "completed")

"""OpenAI's Chat Completions API: its refusals and answers.

Sources: OpenAI's API reference (Chat Completions), "Function calling" and "Structured Outputs". The error messages are
quoted from clients' bug reports (openai/openai-openapi#541, langchain-ai/langchain#35424, BerriAI/litellm#34569,
BerriAI/litellm#10083), or follow the documentation's wording of the rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from e2e.agents.stand_ins.known_models import known
from e2e.agents.stand_ins.schemas import strict_fault
from e2e.agents.stand_ins.script import Asked, Json, Move, Refusal, new_id, pieces

FIELDS = {
    "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens",
    "max_tokens", "messages", "metadata", "modalities", "model", "n", "parallel_tool_calls", "prediction",
    "presence_penalty", "prompt_cache_key", "prompt_cache_retention", "reasoning_effort", "response_format",
    "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options", "temperature",
    "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
}  # fmt: skip
#: The fields that a message may have.
OF_A_MESSAGE = {
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "refusal",
    "audio",
    "function_call",
    "annotations",
}
#: The content types that each role accepts.
PARTS = {
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "system": {"text"},
    "developer": {"text"},
    "tool": {"text"},
}
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check(body: Json, headers: Mapping[str, str]) -> None:
    """Raises Refusal for a request that the API refuses."""
    del headers
    for name in body:
        if name not in FIELDS:
            raise Refusal(f"Unknown parameter: '{name}'.")
    for name in ("model", "messages"):
        if not body.get(name):
            raise Refusal(f"Missing required parameter: '{name}'.")
    _check_settings(body, str(body["model"]))
    _check_tools(body)
    _check_messages(body["messages"])


def _check_settings(body: Json, model: str) -> None:
    about = known(model)
    if "stream_options" in body and body["stream_options"] is not None and not body.get("stream"):
        raise Refusal("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    if "ResponsesOnly" in about:
        raise Refusal(
            "This model is only supported in v1/responses and not in v1/chat/completions.", 404, "invalid_request_error"
        )
    if "MaxCompletionTokens" in about and "NoThinking" not in about and body.get("max_tokens") is not None:
        raise _unsupported("max_tokens", " Use 'max_completion_tokens' instead.")
    if "NoStop" in about and body.get("stop") is not None:
        raise _unsupported("stop")
    if "DefaultSampling" in about:
        check_sampling(body)
    check_effort(model, "reasoning_effort", body.get("reasoning_effort"))
    effort = body.get("reasoning_effort", "default" if "ReasonsByDefault" in about else None)
    if "ToolsWithoutEffort" in about and body.get("tools") and effort not in (None, "none"):
        raise Refusal(
            f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. Please use "
            "/v1/responses instead."
        )
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema" and wanted["json_schema"].get("strict"):
        fault = strict_fault(wanted["json_schema"]["schema"], needs_all=True)
        if fault:
            raise Refusal(f"Invalid schema for response_format '{wanted['json_schema'].get('name')}': {fault}")


def _unsupported(name: str, way: str = "") -> Refusal:
    return Refusal(f"Unsupported parameter: '{name}' is not supported with this model.{way}")


def check_sampling(body: Json) -> None:
    """Raises Refusal for sampling other than the default one."""
    for name in ("temperature", "top_p"):
        if body.get(name, 1) not in (1, None):
            raise Refusal(
                f"Unsupported value: '{name}' does not support {body[name]} with this model. Only the default (1) "
                "value is supported."
            )


def check_effort(model: str, name: str, effort: str | None) -> None:
    """Raises Refusal for an effort level that the model lacks; every model with effort levels accepts `none`."""
    about = known(model)
    if effort is None:
        return
    if "NoThinking" in about:
        raise _unsupported(name)
    if about.levels and effort not in ("none", *about.levels):
        raise Refusal(
            f"Unsupported value: '{effort}' is not supported with the '{model}' model. Supported values are: "
            f"{', '.join(repr(level) for level in about.levels)}."
        )


def _check_tools(body: Json) -> None:
    for place, tool in enumerate(body.get("tools") or []):
        if tool.get("type") not in ("function", "custom"):
            raise Refusal(f"Invalid value: '{tool.get('type')}'. Supported values are: 'function' and 'custom'.")
        function = tool.get("function") or tool.get("custom") or {}
        if not NAME.fullmatch(str(function.get("name", ""))):
            raise Refusal(
                f"Invalid 'tools[{place}].function.name': string does not match pattern. Expected a string that "
                "matches the pattern '^[a-zA-Z0-9_-]+$'."
            )
        fault = strict_fault(function.get("parameters", {}), needs_all=True) if function.get("strict") else None
        if fault:
            raise Refusal(f"Invalid schema for function '{function['name']}': {fault}")
    if body.get("tool_choice") is not None and not body.get("tools"):
        raise Refusal("Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")


def _check_messages(messages: list[Json]) -> None:
    pending: list[str] = []
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in PARTS:
            raise Refusal(f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', …")
        for name in message:
            if name not in OF_A_MESSAGE:
                raise Refusal(f"Unknown parameter: 'messages[{index}].{name}'.")
        if role == "tool":
            if message.get("tool_call_id") not in pending:
                raise Refusal(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'."
                )
            pending.remove(message["tool_call_id"])
        elif pending:
            raise _unanswered(pending)
        for part in _parts(message):
            if part.get("type") not in PARTS[role]:
                raise Refusal(f"Invalid value: '{part.get('type')}'. Supported values are: 'text'.")
        pending = pending + [call["id"] for call in message.get("tool_calls") or []]
        if message.get("content") is None and role != "assistant":
            raise Refusal(f"Invalid value for 'content': expected a string, got null. (messages[{index}])")
    if pending:
        raise _unanswered(pending)


def _unanswered(pending: list[str]) -> Refusal:
    return Refusal(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(pending)}"
    )


def _parts(message: Json) -> list[Json]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _text(message: Json) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in _parts(message))


def media_type(url: str) -> str:
    """The type that a data URL names."""
    return url.partition(";")[0].removeprefix("data:")


def asked(body: Json) -> Asked:
    """The request in the form that all APIs share."""
    seen = Asked(
        str(body["model"]), bool(body.get("stream")), thinks=body.get("reasoning_effort") not in (None, "none")
    )
    functions = [tool["function"] for tool in body.get("tools") or [] if tool.get("type") == "function"]
    seen.tools = {function["name"]: function.get("parameters", {}) for function in functions}
    after_results = False
    for message in body["messages"]:
        for part in _parts(message):
            if part["type"] == "image_url":
                seen.media.append(media_type(part["image_url"]["url"]))
            elif part["type"] == "file":
                seen.media.append(media_type(part["file"].get("file_data", "")))
        if message["role"] == "tool":
            seen.results.append(_text(message))
        elif message["role"] == "user" and not (after_results and _parts(message)):
            # Media from a tool's result is in a user message after the results.
            seen.results = []
        after_results = message["role"] == "tool"
    return seen


def _usage() -> Json:
    return {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}


def _calls(move: Move) -> list[Json]:
    return [
        {
            "id": new_id("call"),
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for call in move.calls
    ]


def _head(kind: str, model: str) -> Json:
    return {"id": "chatcmpl-1", "object": kind, "created": 1_790_000_000, "model": model}


def stream(model: str, move: Move, with_usage: bool) -> Iterator[bytes]:
    """The stream, one chunk at a time."""
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text} for text in pieces(move.text)]
    deltas += [{"tool_calls": [{"index": number, **call}]} for number, call in enumerate(_calls(move))]
    head = _head("chat.completion.chunk", model)
    for delta in deltas:
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    finish = "tool_calls" if move.calls else "stop"
    yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if with_usage:
        yield _event({**head, "choices": [], "usage": _usage()})
    yield b"data: [DONE]\n\n"


def _event(chunk: Json) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()


def whole(model: str, move: Move) -> Json:
    """The whole answer."""
    message: Json = {"role": "assistant", "content": move.text or None, "refusal": None, "annotations": []}
    if move.calls:
        message["tool_calls"] = _calls(move)
    finish = "tool_calls" if move.calls else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {**_head("chat.completion", model), "choices": [choice], "usage": _usage()}


#: The error messages of a rate limit and an overload.
LIMITED = (429, "Rate limit reached for gpt-5.1 in organization org-1 on requests per min (RPM): Limit 500, Used 500.")
OVERLOADED = (503, "The server is currently overloaded with other requests. Sorry about that! Please retry later.")
KINDS: dict[int, tuple[str, str | None]] = {
    401: ("invalid_request_error", "invalid_api_key"),
    429: ("requests", "rate_limit_exceeded"),
    503: ("service_unavailable_error", None),
}


def error(status: int, message: str, kind: str | None) -> Json:
    """The body of an error."""
    of_status, code = KINDS.get(status, ("invalid_request_error", None))
    return {"error": {"message": message, "type": kind or of_status, "param": None, "code": code}}


def wants_usage(body: Json) -> bool:
    """Whether the stream must end with the token usage."""
    options: Any = body.get("stream_options") or {}
    return bool(options.get("include_usage"))

"""Amazon Bedrock's Converse API: its refusals and answers.

Sources: botocore's service model bedrock-runtime 2023-09-30, Bedrock's user guide (Converse, Tool use). The error
messages are quoted from clients' bug reports (langgenius/dify#17545), or follow the documentation's wording of the
rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from proofgate.mock_bedrock import frame

from e2e.agents.stand_ins.anthropic_messages import SIGNATURE
from e2e.agents.stand_ins.known_models import known
from e2e.agents.stand_ins.script import Asked, Json, Move, Refusal, new_id, pieces

FIELDS = {
    "additionalModelRequestFields", "additionalModelResponseFieldPaths", "guardrailConfig", "inferenceConfig",
    "messages", "outputConfig", "performanceConfig", "promptVariables", "requestMetadata", "serviceTier", "system",
    "toolConfig",
}  # fmt: skip
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
FILE_NAME = re.compile(r"(?!.*\s\s)[a-zA-Z0-9\s()\[\]-]{1,200}")
MEDIA = {"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp", "pdf": "application/pdf"}


def check(body: Json, headers: Mapping[str, str], model: str) -> None:
    """Raises Refusal for a request that the API refuses."""
    del headers
    for name in body:
        if name not in FIELDS:
            raise Refusal(f"The request has an unknown member: {name}")
    messages = body.get("messages") or []
    if not messages or messages[0]["role"] != "user":
        raise Refusal(
            "A conversation must start with a user message. Try again with a conversation that starts with a user "
            "message."
        )
    for index, message in enumerate(messages):
        if index and message["role"] == messages[index - 1]["role"]:
            raise Refusal(
                "A conversation must alternate between user and assistant roles. Make sure the conversation alternates "
                "between user and assistant roles and try again."
            )
        _check_content(message["content"], f"messages.{index}.content")
    _check_settings(body, model)
    _check_tools(body)
    _check_pairs(messages)
    _check_thoughts(body, messages, model)


def _check_content(content: list[Json], place: str) -> None:
    if not content:
        raise Refusal(f"The content field in the Message object at {place.removesuffix('.content')} is empty. Add a "
                      "ContentBlock object to the content field and try again.")  # fmt: skip
    for number, block in enumerate(content):
        if "text" in block and not block["text"].strip():
            raise Refusal(f"The text field in the ContentBlock object at {place}.{number} is blank. Add text to the "
                          "text field, and try again.")  # fmt: skip
        document = block.get("document")
        if document and not FILE_NAME.fullmatch(document["name"]):
            raise Refusal(
                "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, "
                "parentheses, and square brackets. The name can't contain more than one consecutive whitespace "
                "character. Edit the file name and try your request again."
            )
    if any("document" in block for block in content) and not any("text" in block for block in content):
        raise Refusal("When a document is used, the message must contain a text block as well.")


def _check_settings(body: Json, model: str) -> None:
    about, sampling = known(model), {"temperature", "topP"} & set(body.get("inferenceConfig") or {})
    if len(sampling) == 2 and "OneOfTemperatureAndTopP" in about:
        raise _said_by_the_model(
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        )
    if sampling and "DefaultSampling" in about:
        raise _said_by_the_model("`temperature` is deprecated for this model.")
    fields = body.get("additionalModelRequestFields") or {}
    has_effort = "ThinkingBudget" not in about and "NoThinking" not in about
    if "effort" in fields.get("output_config", {}) and not has_effort:
        raise _said_by_the_model("This model does not support the effort parameter.")
    if _thinks(body) and "NoThinking" in about:
        raise _said_by_the_model("thinking is not supported on this model")
    if _thinks(body) and fields["thinking"]["type"] == "adaptive" and not has_effort:
        raise _said_by_the_model("adaptive thinking is not supported on this model")


def _said_by_the_model(words: str) -> Refusal:
    return Refusal(f"The model returned the following errors: {words}")


def _check_tools(body: Json) -> None:
    used = any({"toolUse", "toolResult"} & set(block) for message in body["messages"] for block in message["content"])
    config = body.get("toolConfig") or {}
    if used and not config.get("tools"):
        raise Refusal("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
    for number, tool in enumerate(config.get("tools") or []):
        spec = tool.get("toolSpec")
        if spec is None:
            continue
        if not NAME.fullmatch(spec["name"]):
            raise Refusal(
                f"1 validation error detected: Value '{spec['name']}' at 'toolConfig.tools.{number + 1}.member."
                "toolSpec.name' failed to satisfy constraint: Member must satisfy regular expression pattern: "
                "[a-zA-Z0-9_-]+"
            )
        if spec["inputSchema"]["json"].get("type") != "object":
            raise Refusal(f"The value at toolConfig.tools.{number}.toolSpec.inputSchema.json.type must be one of the "
                          "following: object.")  # fmt: skip


def _check_pairs(messages: list[Json]) -> None:
    for index, message in enumerate(messages):
        called = [block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block]
        after = messages[index + 1]["content"] if index + 1 < len(messages) else []
        given = [block["toolResult"]["toolUseId"] for block in after if "toolResult" in block]
        missing = [name for name in called if name not in given]
        if missing:
            raise Refusal(
                f"Expected toolResult blocks at messages.{index + 1}.content for the following Ids: "
                f"{', '.join(missing)}"
            )
        if len(given) > len(called):
            raise Refusal(
                f"The number of toolResult blocks at messages.{index + 1}.content exceeds the number of toolUse blocks "
                "of previous turn."
            )


def _thinks(body: Json) -> bool:
    thinking = (body.get("additionalModelRequestFields") or {}).get("thinking") or {}
    return thinking.get("type") in ("enabled", "adaptive")


def _check_thoughts(body: Json, messages: list[Json], model: str) -> None:
    if not _thinks(body):
        return
    if "claude" not in model:
        raise _said_by_the_model(
            "Malformed input request: #: extraneous key [thinking] is not permitted, please reformat your input and "
            "try again."
        )
    for index, message in enumerate(messages):
        for number, block in enumerate(message["content"]):
            text = (block.get("reasoningContent") or {}).get("reasoningText")
            if text is not None and text.get("signature") != SIGNATURE:
                raise _said_by_the_model(f"messages.{index}.content.{number}: Invalid `signature` in `thinking` block")
    results = any("toolResult" in block for block in messages[-1]["content"])
    whole_turns = body["additionalModelRequestFields"]["thinking"]["type"] == "enabled"
    if results and whole_turns and "reasoningContent" not in messages[-2]["content"][0]:
        raise _said_by_the_model(
            f"messages.{len(messages) - 2}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            "`tool_use`."
        )


def asked(body: Json, model: str, streamed: bool) -> Asked:
    """The request in the form that all APIs share."""
    seen = Asked(model, streamed, thinks=_thinks(body))
    for tool in (body.get("toolConfig") or {}).get("tools") or []:
        if "toolSpec" in tool:
            seen.tools[tool["toolSpec"]["name"]] = tool["toolSpec"]["inputSchema"]["json"]
    for message in body["messages"]:
        results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
        inner = [part for result in results for part in result["content"]]
        for part in [*message["content"], *inner]:
            for kind in ("image", "document"):
                if kind in part:
                    seen.media.append(MEDIA.get(part[kind]["format"], part[kind]["format"]))
        if message["role"] == "user" and not results:
            seen.results = []
        texts = [[_said(part) for part in result["content"] if {"text", "json"} & set(part)] for result in results]
        seen.results += [" ".join(found) for found in texts]
    return seen


def _said(part: Json) -> str:
    return str(part["text"]) if "text" in part else json.dumps(part["json"])


def _blocks(move: Move) -> list[tuple[Json | None, list[Json], Json]]:
    """The blocks of an answer: the start of each in a stream, its pieces, and the whole block."""
    found: list[tuple[Json | None, list[Json], Json]] = []
    if move.thought:
        thought = [{"reasoningContent": {"text": move.thought}}, {"reasoningContent": {"signature": SIGNATURE}}]
        whole = {"reasoningContent": {"reasoningText": {"text": move.thought, "signature": SIGNATURE}}}
        found.append((None, thought, whole))
    if move.text:
        found.append((None, [{"text": text} for text in pieces(move.text)], {"text": move.text}))
    for call in move.calls:
        begun = {"toolUseId": new_id("tooluse"), "name": call.name}
        piece = {"toolUse": {"input": json.dumps(call.arguments)}}
        found.append(({"toolUse": begun}, [piece], {"toolUse": {**begun, "input": call.arguments}}))
    return found


USAGE = {"inputTokens": 1000, "outputTokens": 50, "totalTokens": 1050}


def stream(model: str, move: Move) -> Iterator[bytes]:
    """The stream, one frame at a time."""
    del model
    yield frame("messageStart", {"role": "assistant"})
    for index, (begun, said, _) in enumerate(_blocks(move)):
        at = {"contentBlockIndex": index}
        if begun is not None:
            yield frame("contentBlockStart", {**at, "start": begun})
        for piece in said:
            yield frame("contentBlockDelta", {**at, "delta": piece})
        yield frame("contentBlockStop", at)
    yield frame("messageStop", {"stopReason": "tool_use" if move.calls else "end_turn"})
    yield frame("metadata", {"usage": USAGE, "metrics": {"latencyMs": 10}})


def whole(model: str, move: Move) -> Json:
    """The whole answer."""
    del model
    message = {"role": "assistant", "content": [block for _, _, block in _blocks(move)]}
    reason = "tool_use" if move.calls else "end_turn"
    return {"output": {"message": message}, "stopReason": reason, "usage": USAGE, "metrics": {"latencyMs": 10}}


#: The error messages of a rate limit and an overload.
LIMITED = (429, "Too many requests, please wait before trying again.")
OVERLOADED = (503, "Bedrock is unable to process your request.")
EXCEPTIONS = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}


def error(status: int, message: str, kind: str | None) -> Json:
    """The body of an error; its kind is in a header field."""
    del status, kind
    return {"message": message}

"""Google's generateContent API: its refusals and answers.

Sources: ai.google.dev (API reference, Function calling, Thought signatures, Thinking). The error messages are quoted
from clients' bug reports (nearai/ironclaw#1510, vercel/ai#8943, jenslys/opencode-gemini-auth#14), or follow the
documentation's wording of the rule.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping

from e2e.agents.stand_ins.known_models import known
from e2e.agents.stand_ins.script import Asked, Json, Move, Refusal, new_id, pieces

#: The thought signature that the API requires with the first call of a turn, and its accepted substitute.
SIGNATURE = "bGlnaHRob3VzZS1zaWduYXR1cmU="
STAND_INS = {"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"}
FIELDS = {"contents", "systemInstruction", "tools", "toolConfig", "safetySettings", "generationConfig", "cachedContent",
          "labels", "serviceTier", "store"}  # fmt: skip
OF_GENERATION = {
    "candidateCount", "enableEnhancedCivicAnswers", "frequencyPenalty", "imageConfig", "logprobs", "maxOutputTokens",
    "mediaResolution", "presencePenalty", "responseJsonSchema", "responseFormat", "responseLogprobs",
    "responseMimeType", "responseModalities", "responseSchema", "seed", "speechConfig", "stopSequences", "temperature",
    "thinkingConfig", "topK", "topP",
}  # fmt: skip
#: The keywords of JSON Schema that Google's Schema supports.
OF_A_SCHEMA = {
    "anyOf", "default", "description", "enum", "example", "format", "items", "maxItems", "maxLength", "maxProperties",
    "maximum", "minItems", "minLength", "minProperties", "minimum", "nullable", "pattern", "properties",
    "propertyOrdering", "required", "title", "type",
}  # fmt: skip
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")


def camel(name: str) -> str:
    """A field's name in camel case; the API also accepts snake case."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _camelled(value: object, free: bool = False) -> object:
    """The value with all field names in camel case. Arguments, results and schemas of functions keep their names."""
    if isinstance(value, list):
        return [_camelled(item, free) for item in value]
    if not isinstance(value, dict):
        return value
    own = {"args", "response", "properties", "parametersJsonSchema", "responseJsonSchema"}
    return {name if free else camel(name): _camelled(item, free or camel(name) in own) for name, item in value.items()}


def normal(body: Json) -> Json:
    """The request with all field names in camel case."""
    found = _camelled(body)
    assert isinstance(found, dict)
    return found


def check(body: Json, headers: Mapping[str, str], model: str) -> None:
    """Raises Refusal for a request that the API refuses."""
    del headers
    for name in body:
        if name not in FIELDS:
            raise _unknown(name, "")
    if not body.get("contents"):
        raise Refusal("* GenerateContentRequest.contents: contents is not specified\n")
    _check_generation(body.get("generationConfig") or {}, model)
    for place, tool in enumerate(body.get("tools") or []):
        for number, function in enumerate(tool.get("functionDeclarations") or []):
            at = f"tools[{place}].function_declarations[{number}]"
            if not NAME.fullmatch(function.get("name", "")):
                raise Refusal(
                    f"* GenerateContentRequest.{at}.name: Invalid function name. Must start with a letter or an "
                    "underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes "
                    "(-), with a maximum length of 64."
                )
            _check_schema(function.get("parameters") or {}, f"{at}.parameters")
    _check_contents(body["contents"], model)


def _unknown(name: str, place: str) -> Refusal:
    at = f" at '{place}'" if place else ""
    return Refusal(f'Invalid JSON payload received. Unknown name "{name}"{at}: Cannot find field.')


def _check_generation(config: Json, model: str) -> None:
    for name in config:
        if name not in OF_GENERATION:
            raise _unknown(name, "generation_config")
    thinking = config.get("thinkingConfig") or {}
    if "thinkingLevel" in thinking and "thinkingBudget" in thinking:
        raise Refusal("You can only set only one of thinking budget and thinking level.")
    about = known(model)
    if thinking and "NoThinking" in about:
        raise Refusal("Unable to submit request because thinking is not supported by this model.")
    level = thinking.get("thinkingLevel")
    if level is not None and "ThinkingBudget" in about:
        raise Refusal("Thinking level is not supported for this model.")
    if level is not None and about.levels and str(level).lower() not in about.levels:
        raise Refusal(
            f"Thinking level {level} is not supported for this model. Please retry with other thinking level."
        )
    if {"frequencyPenalty", "presencePenalty"} & set(config) and "NoPenalties" in about:
        raise Refusal(f"Penalty is not enabled for models/{model}")


def _check_schema(schema: Json, place: str) -> None:
    for name, value in schema.items():
        if camel(name) not in OF_A_SCHEMA:
            raise _unknown(name, place)
        if name == "properties":
            for key, inner in value.items():
                _check_schema(inner, f"{place}.properties[{key}]")
        elif name == "items":
            _check_schema(value, f"{place}.items")
        elif camel(name) == "anyOf":
            for number, inner in enumerate(value):
                _check_schema(inner, f"{place}.any_of[{number}]")


def _calls(content: Json) -> list[Json]:
    return [part for part in content.get("parts", []) if "functionCall" in part]


def _check_contents(contents: list[Json], model: str) -> None:
    # Only the open turn is checked: the calls since the user's last message.
    for index, content in enumerate(contents):
        if not content.get("parts"):
            raise Refusal(f"* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty.\n")
        called = _calls(content)
        results = [part for part in content["parts"] if "functionResponse" in part]
        before = _calls(contents[index - 1]) if index else []
        if called and (not index or contents[index - 1].get("role") == "model"):
            raise Refusal(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        if len(results) != len(before):
            raise Refusal(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        if called and "SignedCalls" in known(model):
            _check_signature(called[0], index)


def _check_signature(part: Json, index: int) -> None:
    given = part.get("thoughtSignature")
    if given is None:
        raise Refusal(
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
            "correctly, and missing thought_signature may lead to degraded model performance. Additional data, "
            f"function call `default_api:{part['functionCall'].get('name')}` , position {index + 1}. Please refer to "
            "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
        )
    if given != SIGNATURE and given not in STAND_INS and _decoded(given) not in STAND_INS:
        raise Refusal("Thought signature is not valid.")


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text + "==").decode(errors="replace")
    except binascii.Error:
        return ""


def asked(body: Json, model: str, streamed: bool) -> Asked:
    """The request in the form that all APIs share."""
    thinking = (body.get("generationConfig") or {}).get("thinkingConfig") or {}
    seen = Asked(model, streamed, thinks=bool(thinking.get("includeThoughts")))
    for tool in body.get("tools") or []:
        for function in tool.get("functionDeclarations") or []:
            seen.tools[function["name"]] = function.get("parametersJsonSchema") or function.get("parameters") or {}
    for content in body["contents"]:
        parts = content["parts"]
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        inner = [part for result in results for part in result.get("parts", [])]
        for part in [*parts, *inner]:
            if "inlineData" in part:
                seen.media.append(part["inlineData"]["mimeType"])
        if content.get("role") != "model" and not results and any("text" in part for part in parts):
            seen.results = []
        seen.results += [_said(result) for result in results]
    return seen


def _said(result: Json) -> str:
    """The result of a function."""
    response = result.get("response", {})
    texts = [value for value in response.values() if isinstance(value, str)]
    return " ".join(texts) if texts else json.dumps(response)


def _parts(move: Move) -> list[Json]:
    found: list[Json] = []
    if move.thought:
        found.append({"text": move.thought, "thought": True})
    found += [{"text": text} for text in pieces(move.text)]
    for number, call in enumerate(move.calls):
        part: Json = {"functionCall": {"id": new_id("call"), "name": call.name, "args": call.arguments}}
        found.append({**part, "thoughtSignature": SIGNATURE} if number == 0 else part)
    return found


def _answer(model: str, parts: list[Json], finish: str | None) -> Json:
    candidate: Json = {"index": 0, "content": {"role": "model", "parts": parts}}
    if finish:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": 50, "totalTokenCount": 1050}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": "r1"}


def stream(model: str, move: Move) -> Iterator[bytes]:
    """The stream, one part at a time."""
    parts = _parts(move)
    for number, part in enumerate(parts):
        answer = _answer(model, [part], "STOP" if number == len(parts) - 1 else None)
        yield f"data: {json.dumps(answer)}\r\n\r\n".encode()


def whole(model: str, move: Move) -> Json:
    """The whole answer."""
    return _answer(model, _parts(move), "STOP")


#: The error messages of a rate limit and an overload.
LIMITED = (429, "You exceeded your current quota, please check your plan and billing details.")
OVERLOADED = (503, "The model is overloaded. Please try again later.")
STATUSES = {401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


def error(status: int, message: str, kind: str | None) -> Json:
    """The body of an error."""
    return {"error": {"code": status, "message": message, "status": kind or STATUSES.get(status, "INVALID_ARGUMENT")}}

"""A provider that writes the request's placeholders in texts, thoughts and tool calls, in each dialect."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from e2e.kept import Answer, Asked

PLACEHOLDER = re.compile(r"\[[a-z]+-[0-9]+\]")


@dataclass(frozen=True)
class Turn:
    """The provider's answer: its thought, its text, and the arguments of its two calls."""

    thought: str
    text: str
    calls: list[dict[str, Any]]


@dataclass
class Writer:
    """Answers requests, and records the answers."""

    said: list[Turn] = field(default_factory=list)

    def answer(self, asked: Asked) -> Answer:
        request = asked.read()
        names = list(dict.fromkeys(PLACEHOLDER.findall(asked.body.decode())))
        first, middle, last = names[0], names[len(names) // 2], names[-1]
        calls = [
            {"to": last, "cc": [first, middle], "text": f'Dear {last},\n"all" is \\ well — {first}|{middle}'},
            {"to": f"{middle}; {first}", "at": {last: 1, "n": 2.50}},
        ]
        turn = Turn(
            f"{last} is new, {first} is not", f"{first}/{last}: I wrote to {last}, not to [{middle}] [email-", calls
        )
        self.said.append(turn)
        chance = random.Random(len(self.said))
        dialect = next(name for name in _DOCUMENTS if asked.path.endswith(name))
        if request.get("stream"):
            return Answer(events=list(_EVENTS[dialect](turn, chance)))
        return Answer(_DOCUMENTS[dialect](turn))


def _pieces(text: str, chance: random.Random) -> Iterator[str]:
    while text:
        length = chance.choice([1, 1, 2, 3, 5, 8, 40])
        yield text[:length]
        text = text[length:]


def _arguments(turn: Turn) -> list[str]:
    return [json.dumps(call, ensure_ascii=False) for call in turn.calls]


def _event(document: dict[str, Any]) -> bytes:
    name = f"event: {document['type']}\n" if "type" in document else ""
    return f"{name}data: {json.dumps(document)}\n\n".encode()


def _chat(turn: Turn) -> dict[str, Any]:
    calls = [
        {"id": f"call-{number}", "type": "function", "function": {"name": "send_mail", "arguments": arguments}}
        for number, arguments in enumerate(_arguments(turn))
    ]
    message = {"role": "assistant", "content": turn.text, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def _chat_events(turn: Turn, chance: random.Random) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(turn.text, chance):
        yield chunk({"content": piece})
    for number, arguments in enumerate(_arguments(turn)):
        function = {"name": "send_mail", "arguments": ""}
        call = {"index": number, "id": f"call-{number}", "type": "function", "function": function}
        yield chunk({"tool_calls": [call]})
        for piece in _pieces(arguments, chance):
            yield chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls")
    yield b"data: [DONE]\n\n"


def _blocks(turn: Turn) -> list[dict[str, Any]]:
    uses = [
        {"type": "tool_use", "id": f"call-{number}", "name": "send_mail", "input": call}
        for number, call in enumerate(turn.calls)
    ]
    thought = {"type": "thinking", "thinking": turn.thought, "signature": "c2lnbmVk"}
    return [thought, {"type": "text", "text": turn.text}, *uses]


def _message(turn: Turn) -> dict[str, Any]:
    about = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use"}
    return {**about, "stop_sequence": None, "content": _blocks(turn), "usage": {"input_tokens": 3, "output_tokens": 2}}


def _message_events(turn: Turn, chance: random.Random) -> Iterator[bytes]:
    start = {**_message(turn), "content": [], "stop_reason": None}
    yield _event({"type": "message_start", "message": start})
    empty: dict[str, dict[str, Any]] = {
        "thinking": {"thinking": "", "signature": ""},
        "text": {"text": ""},
        "tool_use": {"input": {}},
    }
    for index, block in enumerate(_blocks(turn)):
        kind = block["type"]
        yield _event({"type": "content_block_start", "index": index, "content_block": {**block, **empty[kind]}})
        for delta in _deltas(block, chance):
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    end = {"stop_reason": "tool_use", "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": end, "usage": {"output_tokens": 2}})
    yield _event({"type": "message_stop"})


def _deltas(block: dict[str, Any], chance: random.Random) -> Iterator[dict[str, Any]]:
    match block["type"]:
        case "thinking":
            for piece in _pieces(block["thinking"], chance):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "text":
            for piece in _pieces(block["text"], chance):
                yield {"type": "text_delta", "text": piece}
        case _:
            for piece in _pieces(json.dumps(block["input"], ensure_ascii=False), chance):
                yield {"type": "input_json_delta", "partial_json": piece}


def _items(turn: Turn) -> list[dict[str, Any]]:
    part = {"type": "output_text", "text": turn.text, "annotations": []}
    calls = [
        {"type": "function_call", "id": f"fc-{number}", "call_id": f"call-{number}", "name": "send_mail"}
        | {"arguments": arguments, "status": "completed"}
        for number, arguments in enumerate(_arguments(turn))
    ]
    return [{"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [part]}, *calls]


def _response(turn: Turn) -> dict[str, Any]:
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    about = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed", "tools": []}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "usage": usage | details}
    return {**about, **rest, "output": _items(turn)}


def _response_events(turn: Turn, chance: random.Random) -> Iterator[bytes]:
    events = [{"type": "response.created", "response": {**_response(turn), "status": "in_progress", "output": []}}]
    for index, item in enumerate(_items(turn)):
        events += _item_events({"output_index": index}, item, chance)
    events.append({"type": "response.completed", "response": _response(turn)})
    for number, event in enumerate(events):
        yield _event({**event, "sequence_number": number})


def _item_events(at: dict[str, Any], item: dict[str, Any], chance: random.Random) -> Iterator[dict[str, Any]]:
    yield {"type": "response.output_item.added", **at, "item": {**item, "status": "in_progress", **_emptied(item)}}
    about = {**at, "item_id": item["id"]}
    if item["type"] == "message":
        [part] = item["content"]
        about["content_index"] = 0
        yield {"type": "response.content_part.added", **about, "part": {**part, "text": ""}}
        for piece in _pieces(part["text"], chance):
            yield {"type": "response.output_text.delta", **about, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **about, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **about, "part": part}
    else:
        for piece in _pieces(item["arguments"], chance):
            yield {"type": "response.function_call_arguments.delta", **about, "delta": piece}
        whole = {"name": item["name"], "arguments": item["arguments"]}
        yield {"type": "response.function_call_arguments.done", **about, **whole}
    yield {"type": "response.output_item.done", **at, "item": item}


def _emptied(item: dict[str, Any]) -> dict[str, Any]:
    return {"content": []} if item["type"] == "message" else {"arguments": ""}


_DOCUMENTS = {"/chat/completions": _chat, "/messages": _message, "/responses": _response}
_EVENTS = {"/chat/completions": _chat_events, "/messages": _message_events, "/responses": _response_events}

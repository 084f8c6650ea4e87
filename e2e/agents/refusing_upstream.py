"""A scripted provider that answers an agent turn by turn and refuses what the real API refuses, in its words.

Of OpenAI it serves `POST /v1/responses`, of Anthropic `POST /v1/messages`, both streamed. A session has two turns: the
model calls the client's tool that reads a file, and repeats what the file says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar

Json = dict[str, Any]

#: Thought in the first turn; the API wants it back unchanged (Anthropic, "Extended thinking with tool use").
SIGNATURE = "c2lnbmVkLWJ5LXRoZS1tb2RlbA=="
#: Body fields that exist under a beta alone, with it (Anthropic, "Beta headers"; anthropics/claude-code#21612).
OF_A_BETA = {"context_management": "context-management-2025-06-27", "mcp_servers": "mcp-client-2025-11-20"}
#: Types of tools that the Responses API knows (openai 3.57, ToolParam).
RESPONSES_TOOLS = {
    "apply_patch",
    "code_interpreter",
    "computer",
    "custom",
    "file_search",
    "function",
    "image_generation",
    "local_shell",
    "mcp",
    "namespace",
    "shell",
    "tool_search",
    "web_search",
    "web_search_preview",
}


class Refusal(Exception):
    """The provider answers 400 with these words."""


def check_message(body: Json, betas: str) -> None:
    """Raises Refusal for a request that Anthropic's API refuses."""
    for field, beta in OF_A_BETA.items():
        if field in body and beta not in betas:
            raise Refusal(f"{field}: Extra inputs are not permitted")
    last = body["messages"][-1]
    called = [block for block in blocks(last) if block.get("type") == "tool_result"]
    thinks = body.get("thinking", {}).get("type") in ("enabled", "adaptive")
    if called and thinks:
        before = blocks(body["messages"][-2])
        if before and before[0].get("type") != "thinking":
            raise Refusal(
                "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
            )
        if before and before[0].get("signature") != SIGNATURE:
            raise Refusal("messages.1.content.0: Invalid `signature` in `thinking` block")


def check_response(body: Json) -> None:
    """Raises Refusal for a request that OpenAI's API refuses."""
    for place, tool in enumerate(body.get("tools", [])):
        if tool.get("type") not in RESPONSES_TOOLS:
            raise Refusal(f"Invalid value: '{tool.get('type')}' at tools[{place}].type.")
    given = {item.get("call_id") for item in items(body) if str(item.get("type", "")).endswith("call")}
    for item in items(body):
        if item.get("type") == "function_call_output" and item["call_id"] not in given:
            raise Refusal(f"No tool call found for function call output with call_id {item['call_id']}.")


def blocks(message: Json) -> list[Json]:
    """The blocks of a message; none of one that is a text."""
    content = message.get("content")
    return content if isinstance(content, list) else []


def items(body: Json) -> list[Json]:
    """The items of a response's input."""
    return body["input"] if isinstance(body["input"], list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def message_events(body: Json, path: str) -> Iterator[Json]:
    """The stream of Anthropic's answer: first a call of `Read`, then what the file says."""
    usage = {"input_tokens": 1000, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    yield {"type": "message_start", "message": {**head, "stop_reason": None, "usage": usage}}
    results = [block for block in blocks(body["messages"][-1]) if block.get("type") == "tool_result"]
    can_read = any(tool.get("name") == "Read" for tool in body.get("tools", []))
    if results or not can_read:
        said = f"The file says: {_text(results[0].get('content'))}" if results else "A title"
        written: list[tuple[Json, list[Json]]] = [
            ({"type": "text", "text": ""}, [{"type": "text_delta", "text": said}]),
        ]
        reason = "end_turn"
    else:
        thought = [
            {"type": "thinking_delta", "thinking": "I read it."},
            {"type": "signature_delta", "signature": SIGNATURE},
        ]
        call = [{"type": "input_json_delta", "partial_json": json.dumps({"file_path": path})}]
        written = [
            ({"type": "thinking", "thinking": "", "signature": ""}, thought),
            ({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}, call),
        ]
        if "thinking" not in body:
            written = written[1:]
        reason = "tool_use"
    for index, (block, deltas) in enumerate(written):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 50}}
    yield {"type": "message_stop"}


def response_events(body: Json, path: str) -> Iterator[Json]:
    """The stream of OpenAI's answer: first a call of the client's shell, then what the file says."""
    yield {"type": "response.created", "response": {"id": "resp_1"}}
    outputs = [item for item in items(body) if item.get("type") == "function_call_output"]
    names = {tool.get("name") for tool in body.get("tools", [])}
    calls = {
        "exec_command": {"cmd": f"cat {path}"},
        "shell_command": {"command": f"cat {path}"},
        "shell": {"command": ["cat", path]},
    }
    tool = next((name for name in calls if name in names), None)
    if outputs or tool is None:
        said = f"The file says: {_text(outputs[-1]['output'])}" if outputs else "A title"
        content = [{"type": "output_text", "text": said, "annotations": []}]
        item: Json = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    else:
        arguments = json.dumps(calls[tool])
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": tool, "arguments": arguments}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage = {
        "input_tokens": 1000,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 1050,
    }
    yield {"type": "response.completed", "response": {"id": "resp_1", "output": [item], "usage": usage}}


class Provider(BaseHTTPRequestHandler):
    """Both APIs. `path_of_file` is the file that the model wants to read; what was asked is kept in `asked`."""

    protocol_version = "HTTP/1.1"
    path_of_file: ClassVar[str]
    asked: ClassVar[list[Json]]
    refused: ClassVar[list[str]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        self.asked.append(body)
        of_anthropic = self.path.startswith("/v1/messages")
        try:
            if of_anthropic:
                check_message(body, self.headers.get("anthropic-beta", ""))
                events = message_events(body, self.path_of_file)
            else:
                check_response(body)
                events = response_events(body, self.path_of_file)
        except Refusal as refusal:
            self.refused.append(str(refusal))
            error = {"type": "invalid_request_error", "message": str(refusal)}
            self._answer(400, "application/json", json.dumps({"type": "error", "error": error}).encode())
            return
        stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        self._answer(200, "text/event-stream", stream.encode())

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: the test says what matters."""

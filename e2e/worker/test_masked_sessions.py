"""Fifty turns with masked values: the provider never gets one, and the client always gets all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from e2e.local_gateway import KEYS, MODEL
from e2e.worker.judging import CLAUDE, Worker, judging_worker
from e2e.worker.masked_answers import PLACEHOLDER, Turn, Writer

TURNS = 50
#: Personal data is masked in users' texts, and not in tools' texts.
POLICY: dict[str, Any] = {"packs": ["pii", "secrets", "prompt-injection"]}
ADDRESSES = [f"ann.o-neil+x{number}@mail-{number}.harbour-town.com" for number in range(TURNS)]
SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}}


@dataclass
class Told:
    """The client's answer: its text, its thoughts, the arguments of its calls, and the whole answer as JSON."""

    text: str
    thought: str | None
    arguments: list[str]
    whole: str


class Chat:
    """The Chat Completions API."""

    model = MODEL

    def __init__(self, base_url: str) -> None:
        self.client = openai.OpenAI(base_url=base_url, api_key=KEYS["acme"], max_retries=0)
        self.messages: list[Any] = [{"role": "system", "content": "You write mails."}]

    def ask(self, text: str, stream: bool) -> Told:
        self.messages.append({"role": "user", "content": text})
        function = {"name": "send_mail", "parameters": SCHEMA}
        asked: dict[str, Any] = {
            "model": self.model,
            "messages": self.messages,
            "tools": [{"type": "function", "function": function}],
        }
        if stream:
            with self.client.chat.completions.stream(**asked) as events:
                for _ in events:
                    pass
                completion: Any = events.get_final_completion()
        else:
            completion = self.client.chat.completions.create(**asked)
        message = completion.choices[0].message
        calls = message.tool_calls
        self.messages.append({"role": "assistant", "content": message.content, "tool_calls": [plain(c) for c in calls]})
        for call in calls:
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": result(call.function.arguments)})
        arguments = [call.function.arguments for call in calls]
        return Told(message.content, None, arguments, completion.model_dump_json(warnings=False))

    @staticmethod
    def history(request: Any) -> list[Any]:
        messages: list[Any] = request["messages"]
        return messages

    @staticmethod
    def said(request: Any) -> Iterator[Turn]:
        for message in request["messages"]:
            if message["role"] == "assistant":
                calls = [json.loads(call["function"]["arguments"]) for call in message["tool_calls"]]
                yield Turn("", message["content"], calls)


class Messages:
    """Anthropic's Messages API."""

    def __init__(self, base_url: str) -> None:
        root = base_url.removesuffix("/v1")
        self.client = anthropic.Anthropic(base_url=root, api_key=KEYS["acme"], max_retries=0)
        self.messages: list[Any] = []

    def ask(self, text: str, stream: bool) -> Told:
        self._add({"type": "text", "text": text})
        asked: dict[str, Any] = {
            "model": CLAUDE,
            "max_tokens": 100,
            "system": "You write mails.",
            "messages": self.messages,
            "tools": [{"name": "send_mail", "input_schema": SCHEMA}],
        }
        if stream:
            with self.client.messages.stream(**asked) as events:
                for _ in events:
                    pass
                message: Any = events.get_final_message()
        else:
            message = self.client.messages.create(**asked)
        self.messages.append({"role": "assistant", "content": [plain(block) for block in message.content]})
        thought, words, *uses = message.content
        for use in uses:
            content = result(json.dumps(use.input))
            self._add({"type": "tool_result", "tool_use_id": use.id, "content": content})
        return Told(
            words.text,
            thought.thinking,
            [json.dumps(use.input) for use in uses],
            message.model_dump_json(warnings=False),
        )

    def _add(self, block: dict[str, Any]) -> None:
        if not self.messages or self.messages[-1]["role"] != "user":
            self.messages.append({"role": "user", "content": []})
        self.messages[-1]["content"].append(block)

    @staticmethod
    def history(request: Any) -> list[Any]:
        blocks: list[Any] = []
        for message in request["messages"]:
            content = message["content"]
            blocks += [content] if isinstance(content, str) else content
        return blocks

    @staticmethod
    def said(request: Any) -> Iterator[Turn]:
        for message in request["messages"]:
            if message["role"] == "assistant":
                thought, words, *uses = message["content"]
                yield Turn(thought["thinking"], words["text"], [use["input"] for use in uses])


class Translated(Chat):
    """The Chat Completions API with a provider of the Messages API."""

    model = CLAUDE

    @staticmethod
    def history(request: Any) -> list[Any]:
        return Messages.history(request)

    @staticmethod
    def said(request: Any) -> Iterator[Turn]:
        for message in request["messages"]:
            if message["role"] == "assistant":
                words, *uses = message["content"]
                yield Turn("", words["text"], [use["input"] for use in uses])


class Responses:
    """OpenAI's Responses API."""

    def __init__(self, base_url: str) -> None:
        self.client = openai.OpenAI(base_url=base_url, api_key=KEYS["acme"], max_retries=0)
        self.input: list[Any] = []

    def ask(self, text: str, stream: bool) -> Told:
        self.input.append({"role": "user", "content": text})
        tool = {"type": "function", "name": "send_mail", "parameters": SCHEMA, "strict": False}
        asked: dict[str, Any] = {"model": MODEL, "input": self.input, "tools": [tool], "store": False}
        seen = ""
        if stream:
            with self.client.responses.stream(**asked) as events:
                seen, response = self._read(events)
        else:
            response = self.client.responses.create(**asked)
        self.input += [plain(item) for item in response.output]
        calls = response.output[1:]
        for call in calls:
            self.input.append(
                {"type": "function_call_output", "call_id": call.call_id, "output": result(call.arguments)}
            )
        arguments = [call.arguments for call in calls]
        return Told(response.output_text, None, arguments, seen + response.model_dump_json(warnings=False))

    @staticmethod
    def _read(events: Any) -> tuple[str, Any]:
        """The text of all events and the final answer; checks that the pieces equal the final texts."""
        pieces: dict[str, str] = {}
        seen = []
        for event in events:
            match event.type:
                case "response.output_text.delta" | "response.function_call_arguments.delta":
                    pieces[event.item_id] = pieces.get(event.item_id, "") + event.delta
                case "response.output_text.done":
                    assert pieces[event.item_id] == event.text
                case "response.function_call_arguments.done":
                    assert pieces[event.item_id] == event.arguments
                case "response.output_item.done" | "response.completed" | "response.content_part.done":
                    seen.append(event.model_dump_json(warnings=False))
        return "".join([*seen, *pieces.values()]), events.get_final_response()

    @staticmethod
    def history(request: Any) -> list[Any]:
        items: list[Any] = request["input"]
        return items

    @staticmethod
    def said(request: Any) -> Iterator[Turn]:
        items = request["input"]
        for number, item in enumerate(items):
            if item.get("type") == "message":
                calls = [json.loads(call["arguments"]) for call in items[number + 1 : number + 3]]
                yield Turn("", item["content"][0]["text"], calls)


def plain(model: Any) -> dict[str, Any]:
    """The form in which a client sends an answer's message back."""
    document: dict[str, Any] = model.model_dump(
        exclude_none=True, exclude={"parsed", "parsed_arguments", "caller"}, warnings=False
    )
    document.pop("index", None)
    if "function" in document:
        document["function"].pop("parsed_arguments", None)
    for part in document.get("content") or []:
        part.pop("parsed", None)
    return document


def result(arguments: str) -> str:
    """The tool's result for a call; it contains the call's arguments."""
    return f"sent to {json.loads(arguments)['to']}: {arguments}"


def originals(text: str) -> str:
    """A text of the provider with the original values, as the client must get it."""
    return PLACEHOLDER.sub(lambda found: ADDRESSES[int(found[0][7:-1]) - 1], text)


@pytest.fixture
def running(folder: Path) -> Iterator[tuple[Worker, Writer]]:
    writer = Writer()
    with judging_worker(folder, answer=writer.answer, policy=POLICY) as worker:
        yield worker, writer


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", [Chat, Messages, Responses, Translated])
def test_over_fifty_turns_the_client_has_every_value_and_the_provider_has_none(
    running: tuple[Worker, Writer], dialect: Callable[[str], Chat | Messages | Responses], stream: bool
) -> None:
    worker, writer = running
    session = dialect(worker.gateway.base_url)
    before: list[Any] = []
    with session.client:
        for turn, address in enumerate(ADDRESSES):
            told = session.ask(f"Write to {address} that turn {turn} has come, as to {ADDRESSES[turn // 2]}.", stream)
            [asked] = worker.provider.take()
            said = writer.said[-1]
            assert told.text == originals(said.text)
            assert told.thought in (None, originals(said.thought))
            assert [json.loads(one) for one in told.arguments] == json.loads(originals(json.dumps(said.calls)))
            assert not PLACEHOLDER.search(told.whole)
            assert not any(value.encode() in asked.body for value in ADDRESSES)
            # Earlier messages are sent unchanged, and the model's own texts are sent back as it wrote them.
            request = asked.read()
            history = session.history(request)
            assert history[: len(before)] == before
            before = history
            for sent_back, written in zip(session.said(request), writer.said[:-1], strict=True):
                assert (sent_back.text, sent_back.calls) == (written.text, written.calls)
                assert sent_back.thought in ("", written.thought)

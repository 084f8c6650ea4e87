"""Answers with ambiguous placeholders: typed by a user, in two choices of one answer, or never assigned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openai
import pytest

from e2e.kept import Answer, Asked, keeping_provider
from e2e.local_gateway import KEYS, MODEL, local_gateway
from e2e.worker.judging import Worker, judging_worker
from e2e.worker.test_masked_sessions import POLICY

ANN, BOB = "ann.smith@harbour-town.com", "bob.jones@harbour-town.com"


def written(texts: Sequence[str]) -> Any:
    """Answers with these texts as choices; a stream alternates between the choices."""

    def answer(asked: Asked) -> Answer:
        about = {"id": "c", "created": 1, "model": MODEL}
        if not asked.read().get("stream"):
            choices = [
                {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
                for index, text in enumerate(texts)
            ]
            return Answer({**about, "object": "chat.completion", "choices": choices})
        events = []
        for at in range(max(map(len, texts)) + 1):
            for index, text in enumerate(texts):
                done = "stop" if at == len(text) else None
                choice = {"index": index, "delta": {"content": text[at : at + 1]}, "finish_reason": done}
                if at <= len(text):
                    chunk = {**about, "object": "chat.completion.chunk", "choices": [choice]}
                    events.append(f"data: {json.dumps(chunk)}\n\n".encode())
        return Answer(events=[*events, b"data: [DONE]\n\n"])

    return answer


def told(folder: Path, messages: list[Any], texts: Sequence[str], stream: bool) -> tuple[list[str], Any]:
    """The texts of the client's choices, and the request that the provider received."""
    with judging_worker(folder, answer=written(texts), policy=POLICY) as worker:
        with openai.OpenAI(base_url=worker.gateway.base_url, api_key=KEYS["acme"], max_retries=0) as client:
            got = [""] * len(texts)
            if stream:
                for chunk in client.chat.completions.create(model=MODEL, messages=messages, n=len(texts), stream=True):
                    for choice in chunk.choices:
                        got[choice.index] += choice.delta.content or ""
            else:
                completion = client.chat.completions.create(model=MODEL, messages=messages, n=len(texts))
                got = [choice.message.content or "" for choice in completion.choices]
        [asked] = worker.provider.take()
    return got, asked.read()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_values_are_put_back_in_choices_that_come_at_once(folder: Path, stream: bool) -> None:
    messages = [{"role": "user", "content": f"Write to {ANN} and {BOB}."}]
    got, asked = told(folder, messages, ["To [email-1].", "Not [email-1], but [email-2]", "[email-", ""], stream)
    assert got == [f"To {ANN}.", f"Not {ANN}, but {BOB}", "[email-", ""]
    assert asked["messages"][0]["content"] == "Write to [email-1] and [email-2]."


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_placeholder_that_somebody_typed_stands_for_itself(folder: Path, stream: bool) -> None:
    messages = [{"role": "user", "content": f"What does [email-1] mean? I am {ANN}, he is {BOB}."}]
    got, asked = told(folder, messages, ["[email-1] is a word; [email-2], [email-3], [email-4], [Email-2]"], stream)
    assert got == [f"[email-1] is a word; {ANN}, {BOB}, [email-4], [Email-2]"]
    assert asked["messages"][0]["content"] == "What does [email-1] mean? I am [email-2], he is [email-3]."


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_value_of_a_tools_result_is_masked_only_if_somebody_wrote_it_too(folder: Path, stream: bool) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": json.dumps({"who": ANN})}}
    messages = [
        {"role": "user", "content": f"Who is {ANN}?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": json.dumps({"from": ANN, "to": BOB})},
    ]
    got, asked = told(folder, messages, [f"[email-1] wrote to {BOB}."], stream)
    assert got == [f"{ANN} wrote to {BOB}."]
    _, assistant, tool = asked["messages"]
    assert json.loads(assistant["tool_calls"][0]["function"]["arguments"]) == {"who": "[email-1]"}
    assert json.loads(tool["content"]) == {"from": "[email-1]", "to": BOB}


def test_a_placeholder_of_a_conversation_that_the_provider_keeps_is_not_taken_for_another_value(folder: Path) -> None:
    def answer(asked: Asked) -> Answer:
        text = "Noted [email-1]." if "previous_response_id" not in asked.read() else "I write to [email-1]."
        part = {"type": "output_text", "text": text, "annotations": []}
        message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        about = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
        return Answer({**about, "tools": [], "output": [message], "usage": usage})

    with keeping_provider(answer) as provider:
        settings: dict[str, Any] = {
            "providers": [{"name": "mock", "type": "OpenAI", "baseURL": provider.url, "objectsOf": "acme"}],
            "policy": POLICY,
        }
        with local_gateway(folder, settings=settings) as gateway:
            client = openai.OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"], max_retries=0)
            first = client.responses.create(model=MODEL, input=f"My boss is {ANN}.")
            then = client.responses.create(
                model=MODEL, previous_response_id=first.id, input=f"My rival is {BOB}. Write to my boss."
            )
            client.close()
    assert first.output_text == f"Noted {ANN}."
    # An unresolved placeholder is better than another person's address.
    assert then.output_text == "I write to [email-1]."


def test_values_are_put_back_in_calls_of_tools_that_come_in_turns(folder: Path) -> None:
    arguments = [json.dumps({"to": "[email-1]"}), json.dumps({"to": "[email-2]"})]

    def answer(asked: Asked) -> Answer:
        def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            about = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            return f"data: {json.dumps(about)}\n\n".encode()

        events = []
        for number in range(2):
            function = {"name": "send", "arguments": ""}
            call = {"index": number, "id": f"c{number}", "type": "function", "function": function}
            events.append(chunk({"tool_calls": [call]}))
        for at in range(len(arguments[0])):
            for number, text in enumerate(arguments):
                events.append(chunk({"tool_calls": [{"index": number, "function": {"arguments": text[at]}}]}))
        return Answer(events=[*events, chunk({}, "tool_calls"), b"data: [DONE]\n\n"])

    with judging_worker(folder, answer=answer, policy=POLICY) as worker:
        assert isinstance(worker, Worker)
        with openai.OpenAI(base_url=worker.gateway.base_url, api_key=KEYS["acme"], max_retries=0) as client:
            messages: list[Any] = [{"role": "user", "content": f"Write to {ANN} and {BOB}."}]
            got = ["", ""]
            for event in client.chat.completions.create(model=MODEL, messages=messages, stream=True):
                for call in event.choices[0].delta.tool_calls or []:
                    assert call.function is not None
                    got[call.index] += call.function.arguments or ""
    assert [json.loads(one)["to"] for one in got] == [ANN, BOB]

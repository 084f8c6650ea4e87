"""The official Python client of OpenAI: chat completions and responses."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

import openai

from e2e.worker.clients.asked import LOOK, SCHEMA, Ask, Failed, Told


def _failed(error: openai.OpenAIError) -> Failed:
    response = getattr(error, "response", None)
    return Failed(
        kind=type(error).__name__,
        status=getattr(error, "status_code", None),
        code=getattr(error, "code", None) or getattr(error, "type", None),
        retry=response.headers.get("retry-after") if response is not None else None,
        message=str(error),
    )


class _OpenAI(ABC):
    def __init__(self, base_url: str, key: str) -> None:
        self._client = openai.OpenAI(base_url=f"{base_url}/v1", api_key=key, max_retries=0)

    def ask(self, ask: Ask) -> Told | Failed:
        client: Any = self._client.with_options(api_key=ask.key) if ask.key else self._client
        try:
            return self._streamed(client, ask) if ask.stream else self._whole(client, ask)
        except openai.OpenAIError as error:
            return _failed(error)

    @abstractmethod
    def _whole(self, client: Any, ask: Ask) -> Told:
        """Requests a complete answer."""

    @abstractmethod
    def _streamed(self, client: Any, ask: Ask) -> Told:
        """Requests a stream."""


class OpenAIChat(_OpenAI):
    """The Chat Completions API."""

    def _request(self, ask: Ask) -> dict[str, Any]:
        content: Any = ask.prompt
        if ask.picture:
            url = {"url": f"data:image/png;base64,{ask.picture}"}
            content = [{"type": "text", "text": ask.prompt}, {"type": "image_url", "image_url": url}]
        messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
        if ask.results:
            calls = [
                {
                    "id": f"call_{city}",
                    "type": "function",
                    "function": {"name": "look", "arguments": json.dumps({"city": city})},
                }
                for city in ("oslo", "rome")
            ]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": "12 degrees"} for call in calls]
        request: dict[str, Any] = {"model": ask.model, "messages": messages}
        if ask.tools or ask.results:
            function = {"name": "look", "description": "Looks.", "parameters": LOOK}
            request["tools"] = [{"type": "function", "function": function}]
        if ask.schema:
            wanted = {"name": "trip", "schema": SCHEMA, "strict": True}
            request["response_format"] = {"type": "json_schema", "json_schema": wanted}
        return request

    def _whole(self, client: Any, ask: Ask) -> Told:
        completion = client.chat.completions.create(**self._request(ask))
        choice = completion.choices[0]
        calls = choice.message.tool_calls or []
        return Told(
            choice.message.content or "",
            [(call.function.name, json.loads(call.function.arguments)) for call in calls],
            choice.finish_reason,
            (completion.usage.prompt_tokens, completion.usage.completion_tokens),
        )

    def _streamed(self, client: Any, ask: Ask) -> Told:
        options = {"stream": True, "stream_options": {"include_usage": True}}
        text, finish, usage = "", None, None
        calls: dict[int, list[str]] = {}
        with client.chat.completions.create(**self._request(ask), **options) as stream:
            for chunk in stream:
                if ask.leave:
                    break
                usage = chunk.usage or usage
                for choice in chunk.choices:
                    text += choice.delta.content or ""
                    finish = choice.finish_reason or finish
                    for call in choice.delta.tool_calls or []:
                        begun = calls.setdefault(call.index, ["", ""])
                        begun[0] += call.function.name or ""
                        begun[1] += call.function.arguments or ""
        counted = (usage.prompt_tokens, usage.completion_tokens) if usage else None
        return Told(text, [(name, json.loads(given)) for name, given in calls.values()], finish, counted)


class OpenAIResponses(_OpenAI):
    """The Responses API."""

    def _request(self, ask: Ask) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "input_text", "text": ask.prompt}]
        if ask.picture:
            content.append(
                {"type": "input_image", "image_url": f"data:image/png;base64,{ask.picture}", "detail": "auto"}
            )
        given: list[dict[str, Any]] = [{"role": "user", "content": content}]
        if ask.results:
            for city in ("oslo", "rome"):
                call = {"call_id": f"call_{city}", "name": "look", "arguments": json.dumps({"city": city})}
                given.append({"type": "function_call", **call})
            for city in ("oslo", "rome"):
                given.append({"type": "function_call_output", "call_id": f"call_{city}", "output": "12 degrees"})
        request: dict[str, Any] = {"model": ask.model, "input": given, "store": False}
        if ask.tools or ask.results:
            tool = {"name": "look", "description": "Looks.", "parameters": LOOK, "strict": False}
            request["tools"] = [{"type": "function", **tool}]
        if ask.schema:
            wanted = {"type": "json_schema", "name": "trip", "schema": SCHEMA, "strict": True}
            request["text"] = {"format": wanted}
        return request

    @staticmethod
    def _told(response: Any, text: str) -> Told:
        calls = [item for item in response.output if item.type == "function_call"]
        return Told(
            text,
            [(call.name, json.loads(call.arguments)) for call in calls],
            response.status,
            (response.usage.input_tokens, response.usage.output_tokens),
        )

    def _whole(self, client: Any, ask: Ask) -> Told:
        response = client.responses.create(**self._request(ask))
        return self._told(response, response.output_text)

    def _streamed(self, client: Any, ask: Ask) -> Told:
        text, whole = "", None
        with client.responses.create(**self._request(ask), stream=True) as stream:
            for event in stream:
                if ask.leave:
                    return Told()
                if event.type == "response.output_text.delta":
                    text += event.delta
                if event.type in ("response.completed", "response.incomplete"):
                    whole = event.response
        return self._told(whole, text)

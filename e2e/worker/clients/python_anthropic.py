"""The official Python client of Anthropic."""

from __future__ import annotations

from typing import Any

import anthropic

from e2e.worker.clients.asked import LOOK, SCHEMA, Ask, Failed, Told


class AnthropicMessages:
    """The Messages API."""

    def __init__(self, base_url: str, key: str) -> None:
        self._client = anthropic.Anthropic(base_url=base_url, api_key=key, max_retries=0)

    def ask(self, ask: Ask) -> Told | Failed:
        client: Any = self._client.with_options(api_key=ask.key) if ask.key else self._client
        try:
            if not ask.stream:
                return self._told(client.messages.create(**self._request(ask)))
            with client.messages.stream(**self._request(ask)) as stream:
                if ask.leave:
                    next(iter(stream))
                    return Told()
                return self._told(stream.get_final_message())
        except anthropic.AnthropicError as error:
            response = getattr(error, "response", None)
            body = getattr(error, "body", None)
            told = body.get("error") if isinstance(body, dict) else None
            told = told if isinstance(told, dict) else {}
            return Failed(
                kind=type(error).__name__,
                status=getattr(error, "status_code", None),
                code=told.get("code") or told.get("type"),
                retry=response.headers.get("retry-after") if response is not None else None,
                message=str(error),
            )

    @staticmethod
    def _request(ask: Ask) -> dict[str, Any]:
        content: Any = ask.prompt
        if ask.picture:
            source = {"type": "base64", "media_type": "image/png", "data": ask.picture}
            content = [{"type": "text", "text": ask.prompt}, {"type": "image", "source": source}]
        messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
        if ask.results:
            ids = {city: f"toolu_{city}" for city in ("oslo", "rome")}
            calls = [
                {"type": "tool_use", "id": id, "name": "look", "input": {"city": city}} for city, id in ids.items()
            ]
            results = [{"type": "tool_result", "tool_use_id": id, "content": "12 degrees"} for id in ids.values()]
            messages += [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
        request: dict[str, Any] = {"model": ask.model, "max_tokens": 100, "messages": messages}
        if ask.tools or ask.results:
            request["tools"] = [{"name": "look", "description": "Looks.", "input_schema": LOOK}]
        if ask.schema:
            request["output_config"] = {"format": {"type": "json_schema", "schema": SCHEMA}}
        return request

    @staticmethod
    def _told(message: Any) -> Told:
        return Told(
            "".join(block.text for block in message.content if block.type == "text"),
            [(block.name, block.input) for block in message.content if block.type == "tool_use"],
            message.stop_reason,
            (message.usage.input_tokens, message.usage.output_tokens),
        )

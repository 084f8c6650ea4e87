"""The official Python client of Google."""

from __future__ import annotations

import base64
from typing import Any

import httpx2
from google import genai
from google.genai import errors, types

from e2e.worker.clients.asked import LOOK, SCHEMA, Ask, Failed, Told

_RETRY = "type.googleapis.com/google.rpc.RetryInfo"
_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


class GoogleGenerate:
    """The generateContent API."""

    def __init__(self, base_url: str, key: str) -> None:
        self._base_url = base_url
        self._client = self._with(key)

    def _with(self, key: str) -> Any:
        return genai.Client(api_key=key, http_options=types.HttpOptions(base_url=self._base_url))

    def ask(self, ask: Ask) -> Told | Failed:
        client = self._with(ask.key) if ask.key else self._client
        request = self._request(ask)
        try:
            if not ask.stream:
                return self._told([client.models.generate_content(**request)])
            events = client.models.generate_content_stream(**request)
            if ask.leave:
                next(events)
                events.close()
                return Told()
            return self._told(list(events))
        except errors.APIError as error:
            said = error.details.get("error", {}) if isinstance(error.details, dict) else {}
            details = {detail.get("@type"): detail for detail in said.get("details", [])}
            return Failed(
                kind=type(error).__name__,
                status=error.code,
                code=details.get(_INFO, {}).get("reason") or error.status,
                retry=details.get(_RETRY, {}).get("retryDelay"),
                message=str(error.message),
            )
        except httpx2.HTTPError as error:
            return Failed(type(error).__name__, None, None, None, str(error))

    @staticmethod
    def _request(ask: Ask) -> dict[str, Any]:
        parts = [types.Part(text=ask.prompt)]
        if ask.picture:
            parts.append(types.Part.from_bytes(data=base64.b64decode(ask.picture), mime_type="image/png"))
        contents = [types.Content(role="user", parts=parts)]
        if ask.results:
            cities = ("oslo", "rome")
            calls = [types.Part.from_function_call(name="look", args={"city": city}) for city in cities]
            given = {"result": "12 degrees"}
            results = [types.Part.from_function_response(name="look", response=given) for _ in cities]
            contents += [types.Content(role="model", parts=calls), types.Content(role="user", parts=results)]
        config = types.GenerateContentConfig()
        if ask.tools or ask.results:
            look = types.FunctionDeclaration(name="look", description="Looks.", parameters_json_schema=LOOK)
            config.tools = [types.Tool(function_declarations=[look])]
        if ask.schema:
            config.response_mime_type = "application/json"
            config.response_json_schema = SCHEMA
        return {"model": ask.model, "contents": contents, "config": config}

    @staticmethod
    def _told(answers: list[Any]) -> Told:
        candidates = [answer.candidates[0] for answer in answers if answer.candidates]
        parts = [part for candidate in candidates for part in (candidate.content.parts or [])]
        finishes = [candidate.finish_reason for candidate in candidates if candidate.finish_reason]
        usage = answers[-1].usage_metadata
        return Told(
            "".join(part.text or "" for part in parts),
            [(part.function_call.name, part.function_call.args) for part in parts if part.function_call],
            finishes[-1].value if finishes else None,
            (usage.prompt_token_count, usage.candidates_token_count),
        )

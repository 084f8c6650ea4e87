"""Pydantic AI."""

from __future__ import annotations

import asyncio
from typing import Any

from anthropic import AsyncAnthropic
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

from e2e.agents.drivers import lines

GIVEN = lines.settings()
LIMITS = UsageLimits(request_limit=lines.MAX_TURNS)
THINKING: dict[str, Any] = {
    "chat": {"openai_reasoning_effort": "medium"},
    "responses": {"openai_reasoning_effort": "medium"},
    "messages": {"anthropic_thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 8192},
    "google": {"google_thinking_config": {"include_thoughts": True}},
}


def model() -> Any:
    if GIVEN.api == "messages":
        client = AsyncAnthropic(base_url=GIVEN.base_url, api_key=GIVEN.key)
        return AnthropicModel(GIVEN.model, provider=AnthropicProvider(anthropic_client=client))
    if GIVEN.api == "google":
        return GoogleModel(GIVEN.model, provider=GoogleProvider(api_key=GIVEN.key, base_url=GIVEN.base_url))
    kind = OpenAIChatModel if GIVEN.api == "chat" else OpenAIResponsesModel
    return kind(GIVEN.model, provider=OpenAIProvider(base_url=f"{GIVEN.base_url}/v1", api_key=GIVEN.key))


def read_file(path: str) -> Any:
    """Reads a file of the project."""
    kind, data = lines.read_file(path)
    return data.decode() if kind == "text/plain" else BinaryContent(data, media_type=kind)


AGENT: Any = Agent(model(), instructions="Read files.", tools=[read_file])


async def turn(prompt: str) -> str:
    async with AGENT.run_stream(prompt) as result:
        return "".join([piece async for piece in result.stream_text(delta=True)])


async def work(prompt: str) -> str:
    return str((await AGENT.run(prompt, usage_limits=LIMITS)).output)


async def think(prompt: str) -> str:
    return str((await AGENT.run(prompt, usage_limits=LIMITS, model_settings=THINKING[GIVEN.api])).output)


asyncio.run(lines.serve({"turn": turn, "work": work, "think": think}))

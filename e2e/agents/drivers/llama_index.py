"""LlamaIndex: its models, and its agent."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, DocumentBlock, ImageBlock, TextBlock

from e2e.agents.drivers import lines

GIVEN = lines.settings()


def model(thinking: bool = False) -> Any:
    options: dict[str, Any] = {}
    if GIVEN.api == "messages":
        from llama_index.llms.anthropic import Anthropic

        if thinking:
            options = {
                "thinking_dict": {"type": "enabled", "budget_tokens": 2048},
                "max_tokens": 8192,
                "temperature": 1,
            }
        return Anthropic(model=GIVEN.model, base_url=GIVEN.base_url, api_key=GIVEN.key, **options)
    if GIVEN.api == "google":
        from llama_index.llms.google_genai import GoogleGenAI

        return GoogleGenAI(model=GIVEN.model, api_key=GIVEN.key, http_options={"base_url": GIVEN.base_url})
    address = {"api_base": f"{GIVEN.base_url}/v1", "api_key": GIVEN.key}
    if GIVEN.api == "responses":
        from llama_index.llms.openai import OpenAIResponses

        options = {"reasoning_options": {"effort": "medium"}} if thinking else {}
        return OpenAIResponses(model=GIVEN.model, **address, **options)
    if thinking:
        options = {"reasoning_effort": "medium"}
    if GIVEN.model.startswith("gpt-"):
        from llama_index.llms.openai import OpenAI

        return OpenAI(model=GIVEN.model, **address, **options)
    # The class for OpenAI's own models accepts only OpenAI's model names.
    from llama_index.llms.openai_like import OpenAILike

    if thinking:
        options = {"additional_kwargs": {"reasoning_effort": "medium"}}
    shape = {"is_chat_model": True, "is_function_calling_model": True, "context_window": 200_000}
    return OpenAILike(model=GIVEN.model, **shape, **address, **options)


def read_file(path: str) -> Any:
    """Reads a file of the project."""
    kind, data = lines.read_file(path)
    if kind == "image/png":
        return [ImageBlock(image=data, image_mimetype=kind)]
    if kind == "application/pdf":
        return [DocumentBlock(data=lines.in_base64(data).encode(), document_mimetype=kind, title="paper")]
    return [TextBlock(text=data.decode())]


async def run(prompt: str, thinking: bool) -> str:
    agent = FunctionAgent(tools=[read_file], llm=model(thinking), timeout=None)
    return str(await agent.run(prompt, max_iterations=lines.MAX_TURNS))


async def work(prompt: str) -> str:
    return await run(prompt, thinking=False)


async def think(prompt: str) -> str:
    return await run(prompt, thinking=True)


async def turn(prompt: str) -> str:
    stream = await model().astream_chat([ChatMessage(prompt)])
    return "".join([piece.delta or "" async for piece in stream])


asyncio.run(lines.serve({"turn": turn, "work": work, "think": think}))

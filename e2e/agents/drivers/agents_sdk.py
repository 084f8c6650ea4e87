"""OpenAI's Agents SDK."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    function_tool,
    set_tracing_disabled,
)
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI
from openai.types.responses import ResponseTextDeltaEvent
from openai.types.shared import Reasoning

from e2e.agents import mcp_server
from e2e.agents.drivers import lines

GIVEN = lines.settings()
CLIENT = AsyncOpenAI(base_url=f"{GIVEN.base_url}/v1", api_key=GIVEN.key)
MODELS: Any = {"responses": OpenAIResponsesModel, "chat": OpenAIChatCompletionsModel}


@function_tool
def read_file(path: str) -> Any:
    """Reads a file of the project."""
    kind, data = lines.read_file(path)
    if kind == "text/plain":
        return ToolOutputText(text=data.decode())
    url = f"data:{kind};base64,{lines.in_base64(data)}"
    if kind == "image/png":
        return ToolOutputImage(image_url=url)
    return ToolOutputFileContent(file_data=url, filename="paper.pdf")


def agent(**options: Any) -> Any:
    model = MODELS[GIVEN.api](model=GIVEN.model, openai_client=CLIENT)
    return Agent(name="reader", instructions="Read files.", model=model, tools=[read_file], **options)


async def turn(prompt: str) -> str:
    result = Runner.run_streamed(agent(), prompt)
    text = ""
    async for event in result.stream_events():
        if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
            text += event.data.delta
    assert text == result.final_output
    return text


async def work(prompt: str) -> str:
    return str((await Runner.run(agent(), prompt, max_turns=lines.MAX_TURNS)).final_output)


async def think(prompt: str) -> str:
    thinking = ModelSettings(reasoning=Reasoning(effort="medium"))
    return str((await Runner.run(agent(model_settings=thinking), prompt, max_turns=lines.MAX_TURNS)).final_output)


async def mcp(prompt: str) -> str:
    # The default timeout is 5 seconds, which a busy machine may need to start a process.
    started: Any = {"command": sys.executable, "args": [mcp_server.__file__]}
    async with MCPServerStdio(started, client_session_timeout_seconds=lines.PATIENCE) as server:
        return str((await Runner.run(agent(mcp_servers=[server]), prompt, max_turns=lines.MAX_TURNS)).final_output)


async def models(prompt: str) -> str:
    return " ".join([model.id async for model in CLIENT.models.list()])


set_tracing_disabled(True)
asyncio.run(lines.serve({"turn": turn, "work": work, "think": think, "mcp": mcp, "models": models}))

"""LangChain's chat models, in a loop that sends them the results of their tools."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool

from e2e.agents.drivers import lines

GIVEN = lines.settings()


def model(thinking: bool = False) -> Any:
    if GIVEN.api == "messages":
        from langchain_anthropic import ChatAnthropic

        options: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 8192}
        return ChatAnthropic(
            model=GIVEN.model, base_url=GIVEN.base_url, api_key=GIVEN.key, **(options if thinking else {})
        )
    if GIVEN.api == "google":
        from langchain_google_genai import ChatGoogleGenerativeAI

        options = {"include_thoughts": True} if thinking else {}
        return ChatGoogleGenerativeAI(model=GIVEN.model, base_url=GIVEN.base_url, google_api_key=GIVEN.key, **options)
    from langchain_openai import ChatOpenAI

    options = {"reasoning_effort": "medium"} if thinking else {}
    if GIVEN.api == "responses":
        options["use_responses_api"] = True
    return ChatOpenAI(model=GIVEN.model, base_url=f"{GIVEN.base_url}/v1", api_key=GIVEN.key, **options)


@tool
def read_file(path: str) -> Any:
    """Reads a file of the project."""
    kind, data = lines.read_file(path)
    if kind == "text/plain":
        return data.decode()
    shape = "image" if kind == "image/png" else "file"
    part = {"type": shape, "base64": lines.in_base64(data), "mime_type": kind}
    return [{**part, "filename": "paper.pdf"} if shape == "file" else part]


def text_of(message: Any) -> str:
    return str(message.text if isinstance(message.text, str) else message.text())


async def turn(prompt: str) -> str:
    pieces = [piece async for piece in model().astream(prompt)]
    return "".join(text_of(piece) for piece in pieces)


async def loop(prompt: str, thinking: bool) -> str:
    bound = model(thinking).bind_tools([read_file])
    messages: list[Any] = [HumanMessage(prompt)]
    for _ in range(lines.MAX_TURNS):
        answer: Any = None
        async for piece in bound.astream(messages):
            answer = piece if answer is None else answer + piece
        if not answer.tool_calls:
            return text_of(answer)
        messages.append(answer)
        for call in answer.tool_calls:
            content = read_file.invoke(call["args"])
            messages.append(ToolMessage(content, tool_call_id=call["id"], name=call["name"]))
    raise AssertionError("it has no end")


async def work(prompt: str) -> str:
    return await loop(prompt, thinking=False)


async def think(prompt: str) -> str:
    return await loop(prompt, thinking=True)


asyncio.run(lines.serve({"turn": turn, "work": work, "think": think}))

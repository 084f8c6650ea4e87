"""Clients of the Responses API receive events with the types of OpenAI's own package from all providers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import OpenAI
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "rust-core" / "crates" / "chat-providers" / "tests" / "golden" / "responses_openai"
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
STREAMS = sorted(GOLDEN.glob("*/received.sse"), key=str)
WHOLE_STREAMS = [stream for stream in STREAMS if not stream.parent.name.startswith("failing_")]
ANSWERS = sorted(GOLDEN.glob("*/received.json"), key=str)


def name(path: Path) -> str:
    return path.parent.name


def events(stream: Path) -> list[dict[str, Any]]:
    lines = stream.read_text().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


@pytest.mark.parametrize("stream", STREAMS, ids=name)
def test_every_event_has_the_published_type(stream: Path) -> None:
    told = events(stream)
    assert told
    for event in told:
        if event["type"] == "response.failed":
            # Codex uses error codes that the type does not have.
            assert event["response"]["error"]["message"]
            event["response"]["error"]["code"] = "server_error"
        EVENT.validate_python(event)


@pytest.mark.parametrize("answer", ANSWERS, ids=name)
def test_a_whole_answer_has_the_published_type(answer: Path) -> None:
    Response.model_validate_json(answer.read_text())


@pytest.mark.parametrize("stream", WHOLE_STREAMS, ids=name)
def test_the_official_client_puts_the_events_together_to_what_the_last_repeats(stream: Path) -> None:
    served = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=stream.read_bytes())
    transport = httpx2.MockTransport(lambda _: served)
    client = OpenAI(
        api_key="k", base_url="http://gateway.test/v1", http_client=httpx2.Client(transport=transport)
    )
    with client.responses.stream(model="assistant", input="hi") as received:
        told = list(received)
    last = events(stream)[-1]["response"]["output"]
    done = [event.item for event in told if event.type == "response.output_item.done"]
    assert [item.type for item in done] == [item["type"] for item in last]
    texts = [event.delta for event in told if event.type == "response.output_text.delta"]
    said = [
        part["text"] for item in last for part in item.get("content", []) if part["type"] == "output_text"
    ]
    assert "".join(texts) == "".join(said)

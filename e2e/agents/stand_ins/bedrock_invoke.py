"""Claude models on Amazon Bedrock through InvokeModel: Anthropic's API in Bedrock's envelope."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proofgate.mock_bedrock import wrap_event

from e2e.agents.stand_ins import anthropic_messages
from e2e.agents.stand_ins.anthropic_messages import whole
from e2e.agents.stand_ins.bedrock_converse import EXCEPTIONS, LIMITED, OVERLOADED, error
from e2e.agents.stand_ins.script import Asked, Json, Move, Refusal

__all__ = ["EXCEPTIONS", "LIMITED", "OVERLOADED", "asked", "check", "error", "stream", "whole"]

VERSION = "bedrock-2023-05-31"


def _inner(body: Json, model: str) -> Json:
    """The request in the form of Anthropic's own API."""
    return {name: value for name, value in body.items() if not name.startswith("anthropic_")} | {"model": model}


def check(body: Json, headers: Mapping[str, str], model: str) -> None:
    """Raises Refusal for a request that the API refuses."""
    del headers
    if body.get("anthropic_version") != VERSION:
        raise Refusal(f"anthropic_version: Input should be '{VERSION}'")
    for name in ("model", "stream"):
        if name in body:
            raise Refusal(f"{name}: Extra inputs are not permitted")
    fields = {"anthropic-version": VERSION, "anthropic-beta": ",".join(body.get("anthropic_beta", []))}
    anthropic_messages.check(_inner(body, model), fields)


def asked(body: Json, model: str, streamed: bool) -> Asked:
    """The request in the form that all APIs share."""
    seen = anthropic_messages.asked(_inner(body, model))
    seen.stream = streamed
    return seen


def stream(model: str, move: Move) -> Iterator[bytes]:
    """The stream, one frame at a time."""
    for event in anthropic_messages.events(model, move):
        yield wrap_event(event)

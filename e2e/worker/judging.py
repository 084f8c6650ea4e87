"""A worker with rules, in front of a provider that records its requests, and the outcomes of requests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from proofgate import _core

from e2e.kept import Answer, Asked, KeepingProvider, keeping_provider
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE

CLAUDE = "claude-mock"
#: Tenants without any earlier request.
STRANGERS = {f"stranger-{number}": f"stranger-key-{number:04}-0123456789abcdef" for number in range(200)}


Message = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """The outcome of a request: its status, error and redaction header, and the bytes that reached the provider."""

    status: int
    error: str
    replaced: str
    forwarded: bytes

    @property
    def denied(self) -> bool:
        return self.status == 403


@dataclass
class Worker:
    """A worker with rules, and its provider."""

    gateway: LocalGateway
    provider: KeepingProvider

    def ask(self, messages: list[Message], key: str = KEYS["acme"]) -> Verdict:
        return self.post("/v1/chat/completions", {"model": MODEL, "messages": messages}, key)

    def post(self, path: str, body: dict[str, Any], key: str = KEYS["acme"]) -> Verdict:
        self.provider.take()
        host, port = self.gateway.address.rsplit(":", 1)
        connection = HTTPConnection(host, int(port), timeout=PATIENCE)
        try:
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
            connection.request("POST", path, json.dumps(body).encode(), headers)
            response = connection.getresponse()
            told = json.loads(response.read())
        finally:
            connection.close()
        forwarded = b"".join(asked.body for asked in self.provider.take())
        error = told.get("error", {}).get("message", "")
        return Verdict(response.status, error, response.headers.get("x-proofgate-redacted", ""), forwarded)

    def count(self, name: str) -> int:
        """A metric of the cache of verdicts."""
        text = self.gateway.admin_text("/metrics")
        return int(re.search(rf"^proofgate_prefix_verdict{re.escape(name)} (\d+)$", text, re.MULTILINE)[1])  # type: ignore[index]

    def hits(self) -> int:
        return self.count('s_total{result="hit"}')

    def misses(self) -> int:
        return self.count('s_total{result="miss"}')

    def reload(self, **settings: Any) -> None:
        self.gateway.settings |= settings
        self.gateway.write_configuration()
        self.gateway.admin_text("/reload", method="POST", token=self.gateway.admin_token)


def hello(asked: Asked) -> Answer:
    if asked.path.endswith("/messages"):
        message = {"id": "m", "type": "message", "role": "assistant", "model": CLAUDE, "stop_reason": "end_turn"}
        usage = {"input_tokens": 1, "output_tokens": 1}
        return Answer({**message, "content": [{"type": "text", "text": "hello"}], "usage": usage})
    choice = {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
    return Answer({"id": "c", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice]})


@contextmanager
def judging_worker(
    folder: Path,
    tenants: dict[str, Any] | None = None,
    answer: Callable[[Asked], Answer] = hello,
    **settings: Any,
) -> Iterator[Worker]:
    """A worker whose tenants acme and globex have the policies in `tenants`."""
    with before_provider(folder, of_tenants(tenants or {}), answer, **settings) as (gateway, provider):
        yield Worker(gateway, provider)


@contextmanager
def before_provider(
    folder: Path,
    tenants: list[dict[str, Any]],
    answer: Callable[[Asked], Answer] = hello,
    models: tuple[str, str] = (MODEL, CLAUDE),
    **settings: Any,
) -> Iterator[tuple[LocalGateway, KeepingProvider]]:
    """A worker with a model of OpenAI and one of Anthropic; one provider answers both and records its requests."""
    chat, messages = models
    with keeping_provider(answer) as provider:
        settings = {
            "providers": [
                {"name": "mock", "type": "OpenAI", "baseURL": provider.url},
                {"name": "claude", "type": "Anthropic", "baseURL": provider.url},
            ],
            "models": [{"name": chat, "provider": "mock"}, {"name": messages, "provider": "claude"}],
            "tenants": tenants,
            **settings,
        }
        with local_gateway(folder, settings=settings) as gateway:
            yield gateway, provider


def of_tenants(policies: dict[str, Any]) -> list[dict[str, Any]]:
    keys = {**KEYS, **STRANGERS}
    tenants = [{"name": name, "keyHashes": [_core.hash_api_key(key)]} for name, key in keys.items()]
    return [
        {**tenant, "policy": policies[tenant["name"]]} if tenant["name"] in policies else tenant for tenant in tenants
    ]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


def tool(text: str) -> list[Message]:
    """A tool call and its result."""
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    answered = {"role": "assistant", "content": None, "tool_calls": [call]}
    return [answered, {"role": "tool", "tool_call_id": "c", "content": text}]

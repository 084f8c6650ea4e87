"""A mock upstream with the APIs of OpenAI, Anthropic, Google and Amazon, for demonstrations, tests and
benchmarks.

It is plain ASGI without a framework, because in a benchmark it shares the machine with the gateway under
test. Responses are deterministic: the same request gets the same text and the same usage.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import uvloop

from proofgate import mock_bedrock, mock_vertex
from proofgate.http_server import Server, address_of, on_signals
from proofgate.mock_answers import CREATED, ClientError, MockBehaviour, MockExchange, encode
from proofgate.mock_dialects import endpoint_at
from proofgate.mock_google import GeneratedContent

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_MAX_IDS = 100_000
_API_KEY_HEADERS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")


@dataclass(frozen=True)
class UpstreamOptions:
    """The options of the mock upstream."""

    behaviour: MockBehaviour = field(default_factory=MockBehaviour)
    models: tuple[str, ...] = ()  # empty: every model exists
    api_key: str | None = None


@dataclass
class UpstreamStats:
    """Counts of the mock upstream since its start."""

    started: int = 0
    completed: int = 0
    failed: int = 0
    unauthorized: int = 0
    client_disconnects: int = 0
    ids: OrderedDict[str, int] = field(default_factory=OrderedDict)

    def count_id(self, request_id: str) -> None:
        self.ids[request_id] = self.ids.pop(request_id, 0) + 1
        if len(self.ids) > _MAX_IDS:
            self.ids.popitem(last=False)

    def as_json(self) -> bytes:
        return encode(
            {
                "started": self.started,
                "completed": self.completed,
                "failed": self.failed,
                "unauthorized": self.unauthorized,
                "client_disconnects": self.client_disconnects,
                "ids": self.ids,
            }
        )


class MockUpstream:
    """The ASGI application."""

    def __init__(self, upstream: UpstreamOptions) -> None:
        self._upstream = upstream
        key = upstream.api_key
        self._credentials = None if key is None else {f"Bearer {key}".encode(), key.encode()}
        self._stats = UpstreamStats()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        route = (scope["method"], scope["path"])
        endpoint = _endpoint_at(scope) if route[0] == "POST" else None
        if endpoint is not None:
            await self._generate(endpoint, scope, receive, send)
        elif route == ("GET", "/v1/models"):
            await self._models(scope, send)
        elif route == ("GET", "/health"):
            await _write_response(send, 200, b'{"status":"ok"}')
        elif route == ("GET", "/mock/stats"):
            await _write_response(send, 200, self._stats.as_json())
        else:
            message = f"no such endpoint: {scope['method']} {scope['path']}"
            await _send_error(send, MockExchange, 404, "not_found", message)

    async def _models(self, scope: Scope, send: Send) -> None:
        if not self._authorized(scope):
            await _send_error(send, MockExchange, 401, "invalid_api_key", "incorrect API key provided")
            return
        names = self._upstream.models or ("mock-fast", "mock")
        data = [{"id": name, "object": "model", "created": CREATED, "owned_by": "mock"} for name in names]
        await _write_response(send, 200, encode({"object": "list", "data": data}))

    async def _generate(
        self, endpoint: type[MockExchange], scope: Scope, receive: Receive, send: Send
    ) -> None:
        stats = self._stats
        stats.started += 1
        body = await _read_body(receive)
        if body is None:
            stats.client_disconnects += 1
            return
        if not self._authorized(scope):
            stats.unauthorized += 1
            await _send_error(send, endpoint, 401, "invalid_api_key", "incorrect API key provided")
            return
        query = scope["query_string"].decode()
        path = scope["raw_path"].decode()
        target = f"{path}?{query}" if query else path
        try:
            exchange = endpoint(body, self._upstream.behaviour, stats.started, target)
            self._require_model(exchange.model)
        except ClientError as error:
            stats.failed += 1
            await _send_error(send, endpoint, error.status, error.code, str(error))
            return
        if exchange.behaviour.id is not None:
            stats.count_id(exchange.behaviour.id)
        status = exchange.behaviour.status
        completed = await _respond(exchange, status, receive, send)
        if not completed:
            stats.client_disconnects += 1
        elif status is not None or exchange.behaviour.cut is not None:
            stats.failed += 1
        else:
            stats.completed += 1

    def _authorized(self, scope: Scope) -> bool:
        if self._credentials is None:
            return True
        given = [value for name, value in scope["headers"] if name in _API_KEY_HEADERS]
        return len(given) == 1 and given[0] in self._credentials

    def _require_model(self, model: str) -> None:
        if self._upstream.models and model not in self._upstream.models:
            raise ClientError(404, "model_not_found", f"the model {model} does not exist")


def _endpoint_at(scope: Scope) -> type[MockExchange] | None:
    path = scope["raw_path"].decode()
    return endpoint_at(scope["path"]) or mock_bedrock.endpoint(path) or mock_vertex.endpoint(path)


async def _respond(exchange: MockExchange, status: int | None, receive: Receive, send: Send) -> bool:
    """Sends the response that the behaviour directs. Returns False if the client disconnected first."""
    behaviour = exchange.behaviour
    paced = exchange.stream and behaviour.interval > 0
    if not (behaviour.hang or behaviour.latency or paced or behaviour.stall is not None):
        # Without a delay, there is no need to watch for a disconnect.
        await _send_response(exchange, status, None, send)
        return True
    gone = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        if behaviour.hang:
            await gone
            return False
        if behaviour.latency:
            done, _ = await asyncio.wait({gone}, timeout=behaviour.latency)
            if done:
                return False
        return await _send_response(exchange, status, gone, send)
    finally:
        gone.cancel()


async def _send_response(
    exchange: MockExchange, status: int | None, gone: asyncio.Future[None] | None, send: Send
) -> bool:
    if status is not None:
        in_head = status in (429, 503) and not isinstance(exchange, GeneratedContent)
        retry = [(b"retry-after", b"1")] if in_head else []
        message = f"simulated failure with status {status}, as requested"
        await _send_error(send, type(exchange), status, "mock_failure", message, retry)
        return True
    if exchange.stream:
        return await _send_stream(exchange, gone, send)
    body = exchange.completion()
    if exchange.behaviour.cut is None:
        await _write_response(send, 200, body, kind=exchange.answer_type)
    else:
        # If the application returns before the body is complete, uvicorn closes the connection.
        fields = [(b"content-type", exchange.answer_type), (b"content-length", b"%d" % len(body))]
        await send(_response_head(200, fields))
        await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
    return True


async def _send_stream(exchange: MockExchange, gone: asyncio.Future[None] | None, send: Send) -> bool:
    behaviour = exchange.behaviour
    events = exchange.events()
    await send(
        _response_head(200, [(b"content-type", exchange.stream_type), (b"cache-control", b"no-cache")])
    )
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for number, event in enumerate(events):
        if number == behaviour.cut:
            return True
        if gone is not None and number == behaviour.stall:
            await gone
            return False
        # The role chunk is sent immediately. Each content chunk has its own due time, so that delays do not
        # accumulate.
        if gone is not None and behaviour.interval and 0 < number <= exchange.tokens:
            await asyncio.sleep(begun + number * behaviour.interval - loop.time())
            if gone.done():
                return False
        await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
    return True


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read_body(receive: Receive) -> bytes | None:
    """Reads the request body; None if the client disconnected before its end."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def _write_response(
    send: Send,
    status: int,
    body: bytes,
    headers: list[tuple[bytes, bytes]] | None = None,
    kind: bytes = b"application/json",
) -> None:
    await send(
        _response_head(
            status, [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *(headers or [])]
        )
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _response_head(status: int, headers: list[tuple[bytes, bytes]]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers}


async def _send_error(
    send: Send,
    endpoint: type[MockExchange],
    status: int,
    code: str,
    message: str,
    headers: list[tuple[bytes, bytes]] | None = None,
) -> None:
    fields = [*endpoint.error_fields(status), *(headers or [])]
    await _write_response(send, status, endpoint.error(status, code, message), fields)


def run(upstream: UpstreamOptions, listener: socket.socket) -> None:
    """Serves on a bound socket until SIGTERM or SIGINT."""
    # uvicorn reports every deliberately truncated response as an error of the application.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(upstream, listener))


async def _serve(upstream: UpstreamOptions, listener: socket.socket) -> None:
    # The keep-alive is longer than any gateway keeps an idle connection, so that the mock does not close
    # connections that are being reused.
    announcement = f"mock-upstream ready: http://{address_of(listener)}/v1"
    server = Server(MockUpstream(upstream), announcement, keep_alive_seconds=600, limits=None)

    def stop() -> None:
        server.should_exit = True

    with on_signals(stop):
        await server.serve(sockets=[listener])

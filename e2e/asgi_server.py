"""An ASGI server on loopback, and helpers for ASGI applications in front of the stand-in upstream."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import uvloop
from proofgate.http_server import Server, address_of, bind

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@contextmanager
def asgi_server(application: Callable[[Scope, Receive, Send], Awaitable[None]]) -> Iterator[str]:
    """Serves the application during the block; gives its URL, without a path."""
    # uvicorn reports every deliberately cut answer as an error of the application.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    listener = bind("127.0.0.1:0")
    url = f"http://{address_of(listener)}"
    # A connection waits in the backlog until the server runs.
    listener.listen()
    # Longer than any gateway keeps an idle connection.
    server = Server(application, f"ready: {url}", keep_alive_seconds=600, limits=None)

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(server.serve(sockets=[listener]))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield url
    finally:
        server.should_exit = True
        thread.join()


async def whole_body(receive: Receive) -> bytes:
    """The request's body; only the received part if the client disconnected."""
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def received_again(body: bytes, receive: Receive) -> Receive:
    """A `receive` function that gives an application an already read body again."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return first.pop() if first else await receive()

    return receive_again


async def answer(send: Send, status: int, fields: dict[str, str], pieces: list[bytes | None]) -> None:
    """Answers with the pieces of a body; None breaks off the response."""
    headers = [(name.encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    for piece in pieces:
        if piece is None:
            # An application that returns before the body is complete makes uvicorn close the connection.
            return
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def target_of(scope: Scope) -> str:
    """The path and query in their sent form."""
    path, query = scope["raw_path"].decode(), scope["query_string"].decode()
    return f"{path}?{query}" if query else path


def fields_of(scope: Scope) -> dict[str, str]:
    """The header fields of a request, with names in lower case."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}

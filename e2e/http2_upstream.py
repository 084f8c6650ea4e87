"""A stand-in for a provider that supports only HTTP/2 over TLS."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, RequestReceived, StreamEnded

USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


class Http2Upstream:
    """The stand-in: its address, its certificate, and the requests of each of its sessions."""

    def __init__(self, certificate: Path, listener: socket.socket, context: ssl.SSLContext) -> None:
        self.certificate = certificate
        self.url = f"https://127.0.0.1:{listener.getsockname()[1]}/v1"
        #: The pseudo fields and fields of the requests of each session.
        self.sessions: list[list[dict[str, str]]] = []
        self._listener = listener
        self._context = context

    def serve(self) -> None:
        """Serves until the listener is closed."""
        while True:
            try:
                connection, _ = self._listener.accept()
                tls = self._context.wrap_socket(connection, server_side=True)
            except ssl.SSLError:
                continue
            except OSError:
                return
            requests: list[dict[str, str]] = []
            self.sessions.append(requests)
            threading.Thread(target=self._session, args=(tls, requests), daemon=True).start()

    def _session(self, tls: ssl.SSLSocket, requests: list[dict[str, str]]) -> None:
        config = H2Configuration(client_side=False, header_encoding="utf-8")
        session = H2Connection(config)
        session.initiate_connection()
        bodies: dict[int, bytes] = {}
        with tls:
            while True:
                tls.sendall(session.data_to_send())
                read = tls.recv(65536)
                if not read:
                    return
                for event in session.receive_data(read):
                    self._take(session, event, requests, bodies)

    def _take(
        self, session: H2Connection, event: Event, requests: list[dict[str, str]], bodies: dict[int, bytes]
    ) -> None:
        match event:
            case RequestReceived(stream_id=int(stream), headers=headers):
                requests.append({str(name): str(value) for name, value in headers or []})
                bodies[stream] = b""
            case DataReceived(stream_id=int(stream), data=bytes(data), flow_controlled_length=int(length)):
                bodies[stream] += data
                session.acknowledge_received_data(length, stream)
            case StreamEnded(stream_id=int(stream)):
                answer(session, stream, json.loads(bodies.pop(stream)))


def answer(session: H2Connection, stream: int, request: dict[str, Any]) -> None:
    """Answers a chat completion; a stream ends in a separate frame."""
    about = {"id": "chatcmpl-1", "created": 1, "model": request["model"]}
    if not request.get("stream"):
        choice = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
        body = json.dumps({**about, "object": "chat.completion", "choices": [choice], "usage": USAGE}).encode()
        fields = [(":status", "200"), ("content-type", "application/json"), ("content-length", str(len(body)))]
        session.send_headers(stream, fields)
        session.send_data(stream, body, end_stream=True)
        return
    session.send_headers(stream, [(":status", "200"), ("content-type", "text/event-stream")])
    deltas: list[dict[str, Any]] = [{"content": "Hel"}, {"content": "lo"}]
    choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    chunks = [{**about, "object": "chat.completion.chunk", "choices": choice} for choice in choices]
    chunks.append({**about, "object": "chat.completion.chunk", "choices": [], "usage": USAGE})
    for text in [*map(json.dumps, chunks), "[DONE]"]:
        session.send_data(stream, f"data: {text}\n\n".encode())
    session.end_stream(stream)


@contextmanager
def http2_upstream(certificate: Path, key: Path) -> Iterator[Http2Upstream]:
    """A running stand-in."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    listener = socket.create_server(("127.0.0.1", 0))
    upstream = Http2Upstream(certificate, listener, context)
    thread = threading.Thread(target=upstream.serve, daemon=True)
    thread.start()
    try:
        yield upstream
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()

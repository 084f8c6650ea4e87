"""HTTP as raw bytes: a client that sends them, and an upstream that records them."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from e2e.programs import PATIENCE


def send(address: str, request: bytes, timeout: float = PATIENCE) -> bytes:
    """Sends bytes on a new connection and returns everything that comes back until the server closes."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=timeout) as connection:
        connection.sendall(request)
        return read_to_end(connection)


def read_to_end(connection: socket.socket) -> bytes:
    """Reads until the peer closes; a reset counts as the end."""
    received = b""
    while True:
        try:
            piece = connection.recv(65536)
        except ConnectionResetError:
            return received
        if not piece:
            return received
        received += piece


def chat_request(body: bytes, key: str, extra: bytes = b"") -> bytes:
    """A chat completion request that asks the server to close the connection."""
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\nConnection: close\r\n"
        + f"Authorization: Bearer {key}\r\nContent-Length: {len(body)}\r\n".encode()
        + extra
        + b"\r\n"
        + body
    )


def answer(body: bytes, head: bytes = b"Content-Type: application/json\r\n") -> bytes:
    """A response of an upstream that closes the connection afterwards.

    The header announces the close. Otherwise the worker could reuse the connection for its next request.
    """
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def status_of(response: bytes) -> int:
    """The status of a raw response; 0 when there is none."""
    return int(response.split(b" ", 2)[1]) if response.startswith(b"HTTP/1.1 ") else 0


def request_id_of(response: bytes) -> str:
    """The request id in a response."""
    head = response.partition(b"\r\n\r\n")[0].lower()
    [line] = [line for line in head.split(b"\r\n") if line.startswith(b"x-request-id:")]
    return line.partition(b":")[2].strip().decode()


def error_of(response: bytes) -> dict[str, str]:
    """The `error` object of a raw response in OpenAI's shape."""
    error: dict[str, str] = json.loads(response.split(b"\r\n\r\n", 1)[1])["error"]
    return error


@dataclass
class RecordingUpstream:
    """An upstream that records every received byte and answers with fixed bytes."""

    answer: bytes
    port: int = 0
    requests: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"127.0.0.1:{self.port}"

    def serve(self, listener: socket.socket, context: ssl.SSLContext | None) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), connection:
                stream = connection
                if context:
                    stream = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                with stream:
                    self.requests.append(self._one_request(stream))
                    stream.sendall(self.answer)
                    stream.shutdown(socket.SHUT_WR)

    @staticmethod
    def _one_request(stream: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            data += stream.recv(65536) or closed()
        head = data.split(b"\r\n\r\n", 1)[0].lower()
        length = int(head.split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0])
        while len(data) < len(head) + 4 + length:
            data += stream.recv(65536) or closed()
        return data


def closed() -> bytes:
    """Raises ConnectionError instead of returning the missing bytes."""
    raise ConnectionError("the gateway closed in the middle of a message")


@contextmanager
def recording_upstream(answer: bytes, context: ssl.SSLContext | None = None) -> Iterator[RecordingUpstream]:
    """A recording upstream on a loopback port, over TLS if given a context."""
    upstream = RecordingUpstream(answer)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        upstream.port = listener.getsockname()[1]
        thread = threading.Thread(target=upstream.serve, args=(listener, context), daemon=True)
        thread.start()
        try:
            yield upstream
        finally:
            listener.shutdown(socket.SHUT_RDWR)

"""A server that answers every request with the reading of httptools (llhttp), as JSON in the header x-read.

The parser is used as in uvicorn, so the reading is that of a Python server behind the gateway.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import cast

import httptools


class Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.parser = httptools.HttpRequestParser(self)
        self.on_message_begin()

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if not self.transport.is_closing():
                self.transport.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                self.transport.close()

    def on_message_begin(self) -> None:
        self.target = b""
        self.headers: dict[bytes, bytes] = {}
        self.body = bytearray()

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value.strip(b" \t")  # llhttp leaves this to the application

    def on_headers_complete(self) -> None:
        if self.headers.get(b"expect", b"").lower() == b"100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        if self.transport.is_closing():
            return
        length = int(self.headers.get(b"content-length", b"0"))
        framing = "chunked" if b"transfer-encoding" in self.headers else "length" if length else "empty"
        read = {
            "method": self.parser.get_method().decode("latin-1"),
            "target": self.target.decode("latin-1"),
            "host": self.headers.get(b"host", b"").decode("latin-1"),
            "framing": framing,
            "length": len(self.body),
            "sha256": hashlib.sha256(self.body).hexdigest(),
        }
        self.transport.write(f"HTTP/1.1 200 OK\r\nx-read: {json.dumps(read)}\r\ncontent-length: 0\r\n\r\n".encode())
        if not self.parser.should_keep_alive():
            self.transport.close()


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

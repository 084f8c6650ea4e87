"""A server that answers every request with h11's reading of it, as JSON in the header x-read."""

from __future__ import annotations

import asyncio
import hashlib
import json

import h11

LARGEST_HEAD = 128 * 1024  # bytes


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=LARGEST_HEAD)
    request: h11.Request | None = None
    body = bytearray()
    try:
        while True:
            if connection.they_are_waiting_for_100_continue:
                send(connection, writer, h11.InformationalResponse(status_code=100, headers=[]))
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await reader.read(65536))
            elif isinstance(event, h11.Request):
                request, body = event, bytearray()
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                headers = [(b"x-read", reading(request, bytes(body))), (b"content-length", b"0")]
                send(connection, writer, h11.Response(status_code=200, headers=headers))
                send(connection, writer, h11.EndOfMessage())
                await writer.drain()
                if connection.our_state is h11.MUST_CLOSE:
                    break
                connection.start_next_cycle()
            else:
                break
    except h11.RemoteProtocolError as error:
        writer.write(
            f"HTTP/1.1 400 {error}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode("latin-1", "replace")
        )
    except ConnectionError:
        pass
    writer.close()


def send(connection: h11.Connection, writer: asyncio.StreamWriter, event: h11.Event) -> None:
    if data := connection.send(event):
        writer.write(data)


def reading(request: h11.Request, body: bytes) -> bytes:
    headers = dict(request.headers)
    length = int(headers.get(b"content-length", b"0"))
    framing = "chunked" if b"transfer-encoding" in headers else "length" if length else "empty"
    read = {
        "method": request.method.decode("latin-1"),
        "target": request.target.decode("latin-1"),
        "host": headers.get(b"host", b"").decode("latin-1"),
        "framing": framing,
        "length": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return json.dumps(read).encode()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

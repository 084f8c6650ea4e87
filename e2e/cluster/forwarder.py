"""Forward connections from a socket that listens on the machine's 127.0.0.1 to the apiserver in the lab's network.

It is started in the lab's network namespace and inherits the listening socket. A socket stays in the namespace in which
it was created. So this process accepts connections outside and connects inside; it forwards nothing else.

    forwarder.py LISTENING_FD PORT
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys

_CHUNK = 256 * 1024


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(_CHUNK):
            target.write(data)
            await target.drain()
        target.write_eof()
    except OSError:
        target.close()


async def serve(listening: socket.socket, port: int) -> None:
    """Forward every connection until the process is terminated."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
        inner_writer.close()
        writer.close()

    server = await asyncio.start_server(carry, sock=listening, limit=_CHUNK)
    async with server:
        await server.serve_forever()


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    asyncio.run(serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])))


if __name__ == "__main__":
    main()

"""TLS and HTTP/2 in front of the emulated API server: translates streams to requests, forwards HTTP/1.1."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, PingReceived, RequestReceived, StreamReset
from h2.settings import SettingCodes, Settings
from kubernetes.aio import client as kubernetes_client

from proofgate_operator.kube.client import Client
from tests.certificates import write_certificate


class Session:
    """One HTTP/2 connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, front: "Front") -> None:
        self._reader, self._writer, self._front = reader, writer, front
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.streams: dict[int, asyncio.Task[None]] = {}
        self.pings = 0

    async def run(self) -> None:
        values = {SettingCodes.MAX_CONCURRENT_STREAMS: self._front.streams_each}
        self._h2.local_settings = Settings(client=False, initial_values=values)
        self._h2.initiate_connection()
        self._flush()
        try:
            while data := await self._reader.read(65_536):
                for event in self._h2.receive_data(data):
                    self._take(event)
                self._flush()
        finally:
            for task in self.streams.values():
                task.cancel()

    def _take(self, event: object) -> None:
        if isinstance(event, RequestReceived):
            headers = dict(event.headers)  # type: ignore[arg-type]
            assert event.stream_id is not None
            self.streams[event.stream_id] = asyncio.create_task(self._forward(event.stream_id, headers))
        elif isinstance(event, StreamReset):
            self.streams.pop(event.stream_id).cancel()
        elif isinstance(event, PingReceived):
            self.pings += 1
        elif isinstance(event, ConnectionTerminated):
            self._writer.close()

    async def _forward(self, stream: int, headers: dict[str, str]) -> None:
        asked = {name: value for name, value in headers.items() if not name.startswith(":")}
        url = self._front.behind + headers[":path"]
        async with self._front.session.get(url, headers=asked) as answer:
            self._h2.send_headers(stream, [(":status", str(answer.status))])
            self._flush()
            with contextlib.suppress(aiohttp.ClientError):
                async for piece in answer.content.iter_any():
                    while piece:
                        room = min(
                            self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size
                        )
                        if not room:
                            await asyncio.sleep(0)
                            continue
                        self._h2.send_data(stream, piece[:room])
                        piece = piece[room:]
                        self._flush()
            self._h2.end_stream(stream)
            self._flush()
        self.streams.pop(stream, None)

    def go_away(self) -> None:
        """Send GOAWAY, as a server does when it is replaced."""
        self._h2.close_connection()
        self._flush()

    def _flush(self) -> None:
        if not self._front.mute:
            self._writer.write(self._h2.data_to_send())


class Front:
    """A listener in front of `behind`; `protocols` are those that it negotiates."""

    def __init__(self, behind: str, streams_each: int, protocols: tuple[str, ...]) -> None:
        self.behind = behind
        self.streams_each = streams_each
        self.protocols = protocols
        #: While set, it sends nothing more, as after a network failure.
        self.mute = False
        self.sessions: list[Session] = []
        self.session: aiohttp.ClientSession

    @contextlib.asynccontextmanager
    async def serve(self, folder: Path) -> AsyncIterator[Client]:
        """Serve for the duration of the block; yields a client of the emulator through this listener."""
        write_certificate(folder / "front.pem")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "front.pem", folder / "front.pem.key")
        context.set_alpn_protocols(list(self.protocols))
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as self.session:
            server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=context)
            port = server.sockets[0].getsockname()[1]
            configuration = kubernetes_client.Configuration(
                host=f"https://127.0.0.1:{port}", ssl_ca_cert=str(folder / "front.pem")
            )
            client = Client.from_configuration(configuration)
            try:
                yield client
            finally:
                await client.close()
                server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2":
                session = Session(reader, writer, self)
                self.sessions.append(session)
                await session.run()
            else:
                await self._pass_on(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind = urlsplit(self.behind)
        assert behind.port
        from_it, to_it = await asyncio.open_connection(behind.hostname, behind.port)
        try:
            await asyncio.gather(_pipe(reader, to_it), _pipe(from_it, writer))
        finally:
            to_it.transport.abort()


async def _pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while piece := await source.read(65_536):
        sink.write(piece)
    sink.transport.abort()

"""How watches are opened: over connections that they share, or each over its own.

The latter where the API server, or what stands before it, speaks no HTTP/2 or is behind a proxy.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol

from aiohttp import ClientResponse, ClientTimeout
from kubernetes.aio.client.rest import RESTClientObject
from yarl import URL

from proofgate_operator.kube.multiplex import Multiplexer
from proofgate_operator.kube.watch_stream import IDLE_TIMEOUT_SECONDS

_CONNECT_SECONDS = 15


class StreamResponse(Protocol):
    """One answer, whose body arrives piece by piece."""

    status: int
    retry_after: str | None

    def chunks(self, silence: float) -> AsyncIterator[bytes]:
        """Yield the body; raises `TimeoutError` after so many seconds of silence."""


class _DedicatedResponse:
    """An answer with a connection of its own, which times its silence out by itself."""

    def __init__(self, response: ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.retry_after = response.headers.get("Retry-After")

    def chunks(self, silence: float) -> AsyncIterator[bytes]:
        """Yield the body."""
        return self._response.content.iter_any()


class Streams:
    """Opens watches with the configuration, and else the pool, of an `ApiClient`."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self._shared: Multiplexer | None = None

    @contextlib.asynccontextmanager
    async def open(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[StreamResponse]:
        """Send a GET and yield its answer; raises what the connection raises."""
        if self._may_share(URL(url)):
            async with self._multiplexer().get(url, headers, IDLE_TIMEOUT_SECONDS) as answer:
                if answer is not None:
                    yield answer
                    return
        silence = ClientTimeout(sock_connect=_CONNECT_SECONDS, sock_read=IDLE_TIMEOUT_SECONDS)
        wrapped = await self._api.call_api("GET", url, header_params=headers, _request_timeout=silence)
        async with wrapped.response as response:
            yield _DedicatedResponse(response)

    def close(self) -> None:
        """End what is open and shared."""
        if self._shared:
            self._shared.close()

    def _may_share(self, url: URL) -> bool:
        return url.scheme == "https" and not self._api.configuration.proxy

    def _multiplexer(self) -> Multiplexer:
        if self._shared is None:
            # What the pool trusts, and HTTP/2 besides, which aiohttp does not speak.
            context = RESTClientObject(self._api.configuration).ssl_context
            context.set_alpn_protocols(["h2", "http/1.1"])
            self._shared = Multiplexer(context, self._api.configuration.tls_server_name)
        return self._shared

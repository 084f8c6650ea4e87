"""Opens watches over shared connections, or each over a separate connection.

Separate connections are used if the API server, or a server in front of it, does not speak HTTP/2 or is
behind a proxy.
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
    """A response whose body arrives in chunks."""

    status: int
    retry_after: str | None

    def chunks(self, silence: float) -> AsyncIterator[bytes]:
        """Yield the body; raises `TimeoutError` after `silence` seconds without data."""


class _DedicatedResponse:
    """A response on a separate connection, which has its own read timeout."""

    def __init__(self, response: ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.retry_after = response.headers.get("Retry-After")

    def chunks(self, silence: float) -> AsyncIterator[bytes]:
        """Yield the body."""
        return self._response.content.iter_any()


class Streams:
    """Opens watches with the configuration of an `ApiClient`, and with its pool where connections cannot be
    shared."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self._shared: Multiplexer | None = None

    @contextlib.asynccontextmanager
    async def open(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[StreamResponse]:
        """Send a GET and yield its response; raises the exceptions of the connection."""
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
        """Close the shared connections."""
        if self._shared:
            self._shared.close()

    def _may_share(self, url: URL) -> bool:
        return url.scheme == "https" and not self._api.configuration.proxy

    def _multiplexer(self) -> Multiplexer:
        if self._shared is None:
            # Trusts the same certificates as the pool, and offers HTTP/2, which aiohttp does not speak.
            context = RESTClientObject(self._api.configuration).ssl_context
            context.set_alpn_protocols(["h2", "http/1.1"])
            self._shared = Multiplexer(context, self._api.configuration.tls_server_name)
        return self._shared

"""One HTTP exchange: a request and its complete response, with limits on time and size.

It does not use urllib, which follows redirects and proxies of the environment, and whose timeout restarts
with every byte.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from proofgate.forward_proxy import ForwardProxy
from proofgate.timed_http import TimedResponse

_proxy: ContextVar[ForwardProxy | None] = ContextVar("egress_proxy", default=None)


class HttpRequestError(Exception):
    """There is no complete response. The message says why, without any text of the response."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class HttpResponse:
    """A response with any status. Redirects are not followed."""

    status: int
    media_type: str
    """The `Content-Type` of the response; empty if there is none."""
    body: bytes
    date: str = ""
    """The `Date` of the response, by the clock of the server; empty if there is none."""


@dataclass(frozen=True)
class HttpRequestLimits:
    """Limits of an exchange: `seconds` to connect to each address, another `seconds` for the rest, and the
    maximum bytes of the response's body."""

    seconds: float
    max_response_bytes: int


@contextlib.contextmanager
def use_proxy(proxy: ForwardProxy | None) -> Iterator[None]:
    """Within the block, sends the exchanges of this thread through a forward proxy if it applies to their
    URLs."""
    token = _proxy.set(proxy)
    try:
        yield
    finally:
        _proxy.reset(token)


def send_http_request(
    method: str,
    url: str,
    headers: Mapping[str, str],
    bounds: HttpRequestLimits,
    body: bytes | None = None,
    authorities: Path | None = None,
) -> HttpResponse:
    """Sends a request to an http(s) URL and returns the response. https uses the system's root certificates,
    or instead the PEM file `authorities`, which is read each time. Blocks; raises HttpRequestError."""
    connection = _connect(url, bounds.seconds, authorities)
    try:
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        # This also applies to the response of a proxy, which arrives while connecting.
        connection.response_class = _timed_response_class(2 * bounds.seconds)
        connection.connect()
        connection.response_class = _timed_response_class(bounds.seconds)
        connection.request(method, target, body, {**headers, "Connection": "close"})
        with connection.getresponse() as response:
            return _read_response(response, bounds.max_response_bytes)
    except TimeoutError:
        raise HttpRequestError("timeout", f"no complete response within {bounds.seconds:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise HttpRequestError("tls", f"the certificate is not trusted: {error.verify_message}") from None
    except ssl.SSLError:
        raise HttpRequestError("tls", "the TLS handshake failed") from None
    except OSError as error:
        if refused := re.match(r"Tunnel connection failed: (\d{3})", str(error)):
            raise HttpRequestError("proxy", f"the egress proxy answers {refused[1]}") from None
        raise HttpRequestError(
            "unreachable", f"not reachable: {error.strerror or 'connection failed'}"
        ) from None
    except UnicodeError:
        raise HttpRequestError("unreachable", "not reachable: the host name is not valid") from None
    except http.client.HTTPException:
        raise HttpRequestError("bad_answer", "the response is not HTTP") from None
    finally:
        connection.close()


def _timed_response_class(seconds: float) -> type[http.client.HTTPResponse]:
    return functools.partial(TimedResponse, deadline=time.monotonic() + seconds)  # type: ignore[return-value]


def _connect(url: str, timeout: float, authorities: Path | None) -> http.client.HTTPConnection:
    parts, proxy = urlsplit(url), _proxy.get()
    host, port = parts.hostname or "", parts.port
    if proxy is not None and not proxy.applies_to(url):
        proxy = None
    at = (host, port) if proxy is None else (proxy.host, proxy.port)
    if parts.scheme == "https":
        try:
            context = ssl.create_default_context(cafile=authorities)
        except OSError:
            raise HttpRequestError("tls", "the certificates to trust cannot be read") from None
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            *at, timeout=timeout, context=context
        )
    else:
        connection = http.client.HTTPConnection(*at, timeout=timeout)
    if proxy is not None:
        if not proxy.is_usable:
            raise HttpRequestError("proxy", "the credentials for the egress proxy cannot be read")
        shown = proxy.authorization
        headers = {} if shown is None else {"Proxy-Authorization": shown.get_secret_value()}
        connection.set_tunnel(host, port, headers)
    return connection


def _read_response(response: http.client.HTTPResponse, most: int) -> HttpResponse:
    body = response.read(most + 1)
    if len(body) > most:
        raise HttpRequestError("too_large", f"the response is larger than {most} bytes")
    if response.length:
        raise HttpRequestError("bad_answer", "the response is truncated")
    headers = response.headers
    return HttpResponse(response.status, headers.get("Content-Type", ""), body, headers.get("Date", ""))

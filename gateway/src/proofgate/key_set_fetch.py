"""Fetching a JSON Web Key Set: one GET, bounded in time and size, believed only as far as TLS goes.

Not urllib: it follows redirects and proxies of the environment, and its timeout starts anew with every byte.
"""

from __future__ import annotations

import functools
import http.client
import ssl
import time
from urllib.parse import urlsplit

from proofgate.timed_http import TimedResponse

TIMEOUT_SECONDS = 5.0
SIZE_MAXIMUM = 262_144


class FetchError(Exception):
    """A key set could not be fetched. Says why, without a word of the answer."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def fetch_key_set(url: str, timeout: float = TIMEOUT_SECONDS) -> str:
    """The text at an http(s) URL; https with the system's roots. Blocks; raises FetchError.

    Connecting may take `timeout` seconds for each address, the exchange as a whole `timeout` seconds more.
    """
    connection = _connect(url, timeout)
    try:
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.connect()
        connection.response_class = functools.partial(  # type: ignore[assignment]
            TimedResponse, deadline=time.monotonic() + timeout
        )
        connection.request("GET", target, headers={"Accept": "application/json", "Connection": "close"})
        with connection.getresponse() as response:
            return _text(response)
    except TimeoutError:
        raise FetchError("timeout", f"no whole answer within {timeout:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise FetchError("tls", f"the certificate is not trusted: {error.verify_message}") from None
    except ssl.SSLError:
        raise FetchError("tls", "the TLS handshake failed") from None
    except OSError as error:
        raise FetchError("unreachable", f"not reachable: {error.strerror or 'connection failed'}") from None
    except UnicodeError:
        raise FetchError("unreachable", "not reachable: the host's name is not one") from None
    except http.client.HTTPException:
        raise FetchError("bad_answer", "the answer is not HTTP") from None
    finally:
        connection.close()


def _connect(url: str, timeout: float) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, parts.port, timeout=timeout, context=context)
    return http.client.HTTPConnection(host, parts.port, timeout=timeout)


def _text(response: http.client.HTTPResponse) -> str:
    if 300 <= response.status < 400:
        raise FetchError("redirect", "redirects are not followed: set jwksURL to where the keys are")
    if response.status != http.HTTPStatus.OK:
        raise FetchError("http_status", f"the answer is HTTP {response.status}")
    body = response.read(SIZE_MAXIMUM + 1)
    if len(body) > SIZE_MAXIMUM:
        raise FetchError("too_large", f"the answer is larger than {SIZE_MAXIMUM} bytes")
    if response.length:
        raise FetchError("bad_answer", "the answer ends too early")
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise FetchError("bad_answer", "the answer is not UTF-8 text") from None

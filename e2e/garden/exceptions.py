"""Accepted differences of parsers, by name and with the reason.

Each exemption is for a refusal of a request that RFC 9112 allows, or for a closed connection after such a request: a
parser that refuses or closes reads no other request. A parser that reads a request differently is never exempt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from e2e.garden.reading import Message


@dataclass(frozen=True)
class Exemption:
    """A legal request that some oracles refuse, or after which they close the connection although more could follow."""

    name: str
    oracles: frozenset[str]
    applies: Callable[[Message], bool]
    reason: str
    source: str  # the place in the oracle's code or documentation
    closes: bool = False


def excuse(oracle: str, message: Message, closes: bool) -> str | None:
    """The name of the exemption that allows this oracle to refuse this message, or to close after it, or None."""
    fitting = (
        each for each in EXEMPTIONS if each.closes == closes and oracle in each.oracles and each.applies(message)
    )
    return next((each.name for each in fitting), None)


def _field(message: Message, pattern: bytes) -> bool:
    head = message.raw.partition(b"\r\n\r\n")[0]
    return re.search(rb"\r\n" + pattern, head, re.IGNORECASE) is not None


def leaves_http(oracle: str, message: Message) -> bool:
    """Whether this oracle reads the bytes after the head as another protocol, so that it cannot be asked.

    llhttp does so if Connection and Upgrade offer a protocol (src/native/http.c, llhttp__before_headers_complete). The
    gateway never answers 101, so the client continues with HTTP/1.1 (RFC 9110 section 7.8). After a request without a
    body, the gateway closes the connection.
    """
    offers = _field(message, rb"upgrade:") and _field(message, rb"connection:[^\r]*upgrade")
    return oracle in {"node", "httptools"} and offers


def _above_root(target: str) -> bool:
    depth = 0
    path = re.sub("%2e", ".", target.partition("?")[0], flags=re.IGNORECASE).replace("%2F", "/").replace("%2f", "/")
    for segment in path.split("/"):
        depth += {"": 0, ".": 0, "..": -1}.get(segment, 1)
        if depth < 0:
            return True
    return False


# The methods that the comparison sends and llhttp supports.
LLHTTP_METHODS = {"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"}

EXEMPTIONS: tuple[Exemption, ...] = (
    Exemption(
        "unknown method",
        frozenset({"node", "httptools"}),
        lambda message: message.reading.method not in LLHTTP_METHODS,
        "llhttp knows a list of methods; RFC 9110 section 9.1 allows any token",
        "llhttp src/llhttp/constants.ts, METHODS_HTTP",
    ),
    Exemption(
        "method of other than upper-case letters",
        frozenset({"nginx"}),
        lambda message: re.fullmatch("[A-Z_-]+", message.reading.method) is None,
        "nginx takes methods of upper-case letters, - and _ only",
        "nginx src/http/ngx_http_parse.c, ngx_http_parse_request_line, sw_method",
    ),
    Exemption(
        "TRACE",
        frozenset({"nginx"}),
        lambda message: message.reading.method == "TRACE",
        "nginx answers it with 405 after it has read the head",
        "nginx src/http/ngx_http_request.c, ngx_http_process_request_header",
    ),
    Exemption(
        "underscore in the host of a URL",
        frozenset({"nginx"}),
        lambda message: re.match(rb"(?i)[^ ]+ https?://[^/ ]*_", message.raw) is not None,
        "nginx takes it in Host, where the names of containers have it, but not in a target in absolute form",
        "nginx src/http/ngx_http_parse.c, ngx_http_parse_request_line, sw_host",
    ),
    Exemption(
        "path above the root",
        frozenset({"nginx"}),
        lambda message: _above_root(message.reading.target),
        "nginx resolves dot segments and refuses a path that leaves the root; RFC 3986 section 5.2.4 stays at it",
        "nginx src/http/ngx_http_parse.c, ngx_http_parse_complex_uri, sw_dot_dot",
    ),
    Exemption(
        "close within another connection option",
        frozenset({"nginx"}),
        lambda message: _field(message, rb"connection:[^\r]*close"),
        "nginx looks for the letters anywhere in the value; RFC 9112 section 9.6 lets it close at any time",
        "nginx src/http/ngx_http_request.c, ngx_http_process_connection",
        closes=True,
    ),
    Exemption(
        "field name over 255 bytes",
        frozenset({"haproxy"}),
        lambda message: _field(message, rb"[^:\r]{256,}:"),
        "HAProxy keeps the length of a name in one byte",
        "HAProxy include/haproxy/htx-t.h, the name length in htx_blk.info",
    ),
)

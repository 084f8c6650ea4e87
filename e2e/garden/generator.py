"""Requests at the limits of the grammar: random, but always the same for one seed."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator

from e2e.garden.guard import Candidate

METHODS = (
    ["POST"] * 24 + ["GET"] * 12 + ["HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"] + ["post", "QUERY", "A!b|~"]
)
TOKEN = string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~"
PATH = string.ascii_letters + string.digits + "-._~!$&'()*+,;=:@/|[]"
QUERY = PATH + "?`^{}\\"
VALUE = bytes([9, *range(0x20, 0x7F), *range(0x80, 0x100)])
SHARP = b'\r\n\t\0\x0b\x7f\xff :;,_-+0159afxAF/#@*%[]()"'
SPACES = [" "] * 6 + ["", "\t", "  ", " \t "]
FRAMING_SPACES = [" "] * 40 + [""] * 10 + ["  "] * 5 + ["\t"]  # tabs are refused in framing fields

# Bodies that look like requests, chunks or ends of chunks: a parser that is off by one byte misreads them.
BODIES = [
    b"",
    b"x",
    b'{"model":"m"}',
    b"0\r\n\r\n",
    b"\r\n\r\n",
    b"\r\n0\r\n\r\n",
    b"GET /smuggled HTTP/1.1\r\nHost: garden\r\n\r\n",
    b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: garden\r\n\r\n",
    b"5\r\nhello\r\n0\r\n\r\n",
    bytes(range(256)),
]
FIELDS = [
    "Accept: */*",
    "Accept-Encoding: gzip, deflate, br",
    "Connection: keep-alive",
    "Connection: close",
    "Connection: Close",
    "Connection: close, TE",
    "Connection: TE, X-A",
    "Connection:",
    "Connection: ,, TE,",
    "Connection: upgrade",
    "Proxy-Connection: keep-alive",
    "Keep-Alive: timeout=5",
    "TE: trailers, deflate;q=0.5",
    "Trailer: X-A",
    "Expect: 100-continue",
    "Content-Type: application/json; charset=utf-8",
    "Content-Encoding: gzip",
    "Cookie: a=b",
    "Cookie: c=d",
    "Authorization: Bearer k",
    "X-Forwarded-For: 192.0.2.1",
    "X-A: Content-Length: 5",
    "X-A: Transfer-Encoding: chunked",
    "X-Content-Length: 7",
    "X-Transfer-Encoding: chunked",
    "X_A: 1",
    "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
    "Range: bytes=0-5",
    "Max-Forwards: 0",
    "Origin: null",
    "X-HTTP-Method-Override: DELETE",
    'X-A: "quoted \\" text", (a comment)',
]


def candidates(count: int, seed: str, cases: list[bytes]) -> Iterator[Candidate]:
    """`count` requests: most from the grammar, some from `cases`, and some of both with a few changed bytes."""
    for number in range(count):
        source = random.Random(f"{seed}/{number}")
        raw = source.choice(cases) if source.random() < 0.1 else _request(source)
        if source.random() < 0.2:
            raw = _mutated(source, raw)
        yield Candidate(f"generated {seed}/{number}", raw)


def _request(source: random.Random) -> bytes:
    method = source.choice(METHODS)
    host = _host(source)
    fields = [_framing_field(source, "Host", host)]
    fields += [_field(source) for _ in range(source.choice((0, 1, 2, 3, 5, 30)))]
    body = b""
    kind = source.choice(("none", "none", "length", "length", "length", "chunked", "chunked", "chunked"))
    if method in ("GET", "HEAD", "TRACE") and source.random() < 0.95:
        kind = source.choice(("none", "zero"))
    content = source.choice(BODIES) + source.randbytes(source.choice((0, 0, 1, 7, 300)))
    if kind == "zero":
        fields.append(b"Content-Length: 0")
    elif kind == "length":
        fields.append(_framing_field(source, "Content-Length", str(len(content))))
        body = content
    elif kind == "chunked":
        fields.append(_framing_field(source, "Transfer-Encoding", _cased(source, "chunked")))
        body = _chunks(source, content)
    source.shuffle(fields)
    line = f"{method} {_target(source, host)} HTTP/1.1".encode()
    return b"\r\n".join([line, *fields]) + b"\r\n\r\n" + body


def _target(source: random.Random, host: str) -> str:
    path = "/" + _text(source, PATH, 12)
    if source.random() < 0.3:
        path = source.choice(
            ("/", "//", "/v1/chat/completions", "/../x", "/./a", "/%2e%2E/%41", "/a%2fb", "/a//b", "/*")
        )
    query = "?" + _text(source, QUERY, 12) if source.random() < 0.4 else ""
    absolute = source.choice(("http://", "https://", "HTTP://")) + host if source.random() < 0.1 else ""
    if absolute and not query and source.random() < 0.2:
        return absolute
    return absolute + path + query


def _host(source: random.Random) -> str:
    plain = [
        "garden",
        "GARDEN",
        "garden.example:8080",
        "127.0.0.1",
        "[::1]",
        "[::1]:80",
        "garden:80",
        "xn--bcher-kva.example",
    ]
    odd = ["a_b", "garden.", "-", "1", "garden:0", "garden:00080", "a..b", "~", "g!$&'()*+;=", "%41"]
    return source.choice(plain if source.random() < 0.9 else odd)


def _field(source: random.Random) -> bytes:
    if source.random() < 0.6:
        name, _, text = source.choice(FIELDS).partition(":")
        if name in ("Connection", "Expect"):
            return _framing_field(source, name, text.strip())
        return f"{_cased(source, name)}:{source.choice(SPACES)}{text.strip()}".encode() + _space(source)
    name = "X-" + _text(source, TOKEN, 8)
    value = bytes(source.choices(VALUE, k=source.choice((0, 1, 5, 40, 400))))
    return name.encode() + b":" + source.choice(SPACES).encode() + value


def _framing_field(source: random.Random, name: str, value: str) -> bytes:
    before, after = source.choice(FRAMING_SPACES), source.choice(FRAMING_SPACES)
    return f"{_cased(source, name)}:{before}{value}{after}".encode()


def _chunks(source: random.Random, content: bytes) -> bytes:
    chunked = b""
    while content:
        size = source.choice((1, 2, 15, 16, 255, len(content)))
        chunk, content = content[:size], content[size:]
        digits = f"{len(chunk):{source.choice('xX')}}".rjust(source.choice((1, 1, 1, 4, 8, 16)), "0")
        chunked += digits.encode() + b"\r\n" + chunk + b"\r\n"
    trailers = [_field(source) for _ in range(source.choice((0, 0, 0, 1, 3)))]
    last = source.choice((b"0", b"0", b"0", b"00", b"0000000000000000"))
    return chunked + b"\r\n".join([last, *trailers]) + b"\r\n\r\n"


def _mutated(source: random.Random, raw: bytes) -> bytes:
    changed = bytearray(raw)
    edits: list[Callable[[int], object]] = [
        lambda at: changed.__setitem__(at, source.choice(SHARP)),
        lambda at: changed.insert(at, source.choice(SHARP)),
        lambda at: changed.pop(at),
    ]
    for _ in range(source.choice((1, 1, 2, 3))):
        source.choice(edits)(source.randrange(len(changed)))
    return bytes(changed)


def _cased(source: random.Random, name: str) -> str:
    return source.choice((name, name, name.lower(), name.upper(), name.swapcase()))


def _space(source: random.Random) -> bytes:
    return source.choice((b"",) * 8 + (b" ", b"\t", b" \t"))


def _text(source: random.Random, alphabet: str, longest: int) -> str:
    return "".join(source.choices(alphabet, k=source.randrange(longest)))

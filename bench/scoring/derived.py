"""Texts that are encoded in a text (SEMANTICS.md, "Derived texts")."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass

TOKEN_BYTES = 4096

_TOKEN = re.compile(r"[A-Za-z0-9+/_.~%\\-]+")
_RUN = re.compile(r"[A-Za-z0-9+/_-]+")
_HEX = re.compile(r"[0-9A-Fa-f]+")
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})")
_ESCAPE = re.compile(r"\\+(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))")
_BAD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]")


@dataclass(frozen=True)
class Derived:
    """A decoded text and the characters of the original text, from `start` to before `end`, that it was encoded in.

    The first `plain` of them, before the first escape, stand in the decoded text as they are.
    """

    text: str
    start: int
    end: int
    plain: int = 0


def derived(text: str) -> Iterator[Derived]:
    """All texts that one decoding of a part of the text yields."""
    for token in _TOKEN.finditer(text):
        for start in range(token.start(), token.end(), TOKEN_BYTES):
            yield from _of_token(text, start, min(start + TOKEN_BYTES, token.end()))


def _of_token(text: str, start: int, end: int) -> Iterator[Derived]:
    for run in _RUN.finditer(text, start, end):
        decoded = _run(run.group())
        if decoded is not None and (kept := _kept(decoded)) is not None:
            yield Derived(kept, run.start(), run.end())
    token = text[start:end]
    for whole, escape in ((_percent(token), _PERCENT), (_escapes(token), _ESCAPE)):
        first = escape.search(token)
        if first is not None and whole is not None and (kept := _kept(whole)) is not None:
            yield Derived(kept, start, end, first.start())


def _run(run: str) -> bytes | None:
    digits = run[2:] if run[:2] in ("0x", "0X") else run
    if len(digits) >= 32 and _HEX.fullmatch(digits):
        return bytes.fromhex(digits[: len(digits) // 2 * 2])
    if len(run) < 24:
        return None
    standard = run.replace("-", "+").replace("_", "/")
    if len(standard) % 4 == 1:
        standard = standard[:-1]
    return base64.b64decode(standard + "=" * (-len(standard) % 4))


def _percent(token: str) -> bytes | None:
    if len(_PERCENT.findall(token)) < 3:
        return None
    # The token is ASCII, so its bytes equal the characters with the same numbers.
    spaced = token.replace("+", " ")
    return _PERCENT.sub(lambda escape: chr(int(escape[1], 16)), spaced).encode("latin-1")


def _escapes(token: str) -> bytes | None:
    if len(_ESCAPE.findall(token)) < 3:
        return None
    parts: list[str] = []
    position = 0
    while escape := _ESCAPE.search(token, position):
        parts.append(token[position : escape.start()])
        position = escape.end()
        number = int(escape[1] or escape[2], 16)
        if 0xD800 <= number < 0xDC00 and (low := _low_surrogate(token, position)) is not None:
            parts.append(chr(0x10000 + ((number - 0xD800) << 10) + (low[0] - 0xDC00)))
            position = low[1]
        else:
            parts.append("\ufffd" if 0xD800 <= number < 0xE000 else chr(number))
    parts.append(token[position:])
    return "".join(parts).encode()


def _low_surrogate(token: str, position: int) -> tuple[int, int] | None:
    escape = _ESCAPE.match(token, position)
    if escape is None or escape[1] is None or not 0xDC00 <= int(escape[1], 16) < 0xE000:
        return None
    return int(escape[1], 16), escape.end()


def _kept(decoded: bytes) -> str | None:
    try:
        text = decoded.decode()
    except UnicodeDecodeError:
        return None
    if not text or 10 * len(_BAD.findall(text)) > len(text):
        return None
    return text

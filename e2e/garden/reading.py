"""A parser's reading of a request, in terms that all parsers share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

Framing = Literal["empty", "length", "chunked"]


@dataclass(frozen=True)
class Reading:
    """One request as one parser reads it. `length` is the body's length in bytes without chunk framing."""

    method: str
    target: str
    host: str
    framing: Framing
    length: int
    sha256: str

    @classmethod
    def of(cls, read: dict[str, Any]) -> Reading:
        return cls(**{name: read.get(name) or type(kind)() for name, kind in _EMPTY.items()})

    def in_origin_form(self) -> Reading:
        """The same reading with the target and Host in the gateway's form.

        A target in absolute form loses its scheme and authority, which the guard has already compared with Host. Some
        parsers return this authority as the Host, so case and a default port do not count.
        """
        absolute = re.fullmatch(r"(?i)(https?)://[^/?]*(.*)", self.target, re.DOTALL)
        target = (absolute[2] or "/") if absolute else self.target
        host = re.sub(r":(80|443)$", "", self.host.lower())
        return Reading(self.method, target, host, self.framing, self.length, self.sha256)


_EMPTY: dict[str, Any] = {"method": "", "target": "", "host": "", "framing": "", "length": 0, "sha256": ""}


@dataclass(frozen=True)
class Message:
    """A request to send, and the guard's reading of it."""

    origin: str  # the source (a case, a corpus or the generator), and the name in it
    raw: bytes
    reading: Reading
    keep_alive: bool

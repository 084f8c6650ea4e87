"""The notation of the specification: a case, the bodies of cases, and the collection of cases."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypedDict

# The probe replaces this with a real key. The key is in no body, so lengths do not change.
KEY = "proofgate-framing-key"

Expect = Literal["accept", "drop"] | int


class Case(TypedDict, total=False):
    """One message. `expect` is "accept", the status of the refusal, or "drop": cut short, never answered 2xx.

    `body` is an accepted message's content, and `target` its target after rewriting. `probe` marks the 26 rows of the
    published comparison of servers; `closes` marks an accepted message that requests to close the connection.
    """

    id: str
    row: str
    raw: str
    expect: Expect
    probe: bool
    body: str
    target: str
    closes: bool


class Text(NamedTuple):
    """A body, with the parts of the notation that depend on it."""

    name: str
    body: str

    @property
    def n(self) -> int:
        return len(self.body)

    @property
    def size(self) -> str:
        return f"{self.n:x}"

    @property
    def chunked(self) -> str:
        return f"{self.size}\r\n{self.body}\r\n0\r\n\r\n"


AUTH = f"Authorization: Bearer {KEY}\r\n"
LINE = "POST /v1/chat/completions HTTP/1.1\r\n"
HEAD = f"{LINE}Host: gw\r\n{AUTH}Content-Type: application/json\r\n"


class Cases:
    """Collects cases, without duplicates of a case whose bytes do not depend on the body."""

    def __init__(self) -> None:
        self.all: list[Case] = []
        self.text = Text("", "")

    def add(self, name: str, row: str, raw: str, expect: Expect, *, probe: bool = False, **more: str | bool) -> None:
        case = Case(id=name, row=row, raw=raw, expect=expect, probe=probe)
        case.update(more)  # type: ignore[typeddict-item]
        if any(known["raw"] == raw for known in self.all):
            return
        if any(known["id"] == name for known in self.all):
            case["id"] = f"{name}_{self.text.name}"
        self.all.append(case)

    def accept(self, name: str, row: str, raw: str, **more: str | bool) -> None:
        more.setdefault("body", self.text.body)
        more.setdefault("target", "/v1/chat/completions")
        self.add(name, row, raw, "accept", **more)  # type: ignore[arg-type]

    def body_head(self, name: str, row: str, fields: str, expect: Expect = 400, *, probe: bool = False) -> None:
        """A refused POST whose body has its correct length in bytes."""
        self.add(name, row, f"{HEAD}{fields}\r\n{self.text.body}", expect, probe=probe)

    def chunk_head(self, name: str, row: str, fields: str, expect: Expect = 400, *, probe: bool = False) -> None:
        """A refused POST whose body is encoded as valid chunks."""
        self.add(name, row, f"{HEAD}{fields}\r\n{self.text.chunked}", expect, probe=probe)

    def chunks(self, name: str, row: str, chunks: str, expect: Expect = 400, *, probe: bool = False) -> None:
        """A refused chunked body after a valid head."""
        self.add(name, row, f"{HEAD}Transfer-Encoding: chunked\r\n\r\n{chunks}", expect, probe=probe)

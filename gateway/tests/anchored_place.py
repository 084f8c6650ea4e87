"""An auditor's port whose log the test writes, and a retention job that waits for entries in this log."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from loopback import Handler, answer, answering
from signing import Key

from proofgate import _core

ORIGIN = "audit.example.com/demo"
PLACE = Key(ORIGIN)
KEY = PLACE.verifying
TOMBSTONE = hashlib.sha256(b"a note\n").hexdigest()
ERASURE = "0a" * 32


def head(number: int) -> dict[str, Any]:
    """An entry that retention jobs ignore."""
    return {"v": 1, "kind": "head", "origin": "a/0/X", "size": number, "checkpoint": "note"}


def removed() -> dict[str, Any]:
    """The entry for the tombstone."""
    return {"v": 1, "kind": "removed", "tombstone": "a note\n"}


def erased() -> dict[str, Any]:
    """The entry for the erasure."""
    return {"v": 1, "kind": "statement", "statement": {"kind": "erasure", "sha256": ERASURE, "signed": 1}}


class Auditor:
    """The auditor's log and the requests for it. Before each request for the checkpoint, the next of `events`
    runs: the auditor fails (503), recovers or publishes more entries."""

    def __init__(self) -> None:
        self.origin = ORIGIN
        self.entries: list[bytes] = []
        self.root: bytes | None = None
        self.away = False
        self.asked: list[str] = []
        self.events: list[Callable[[], None]] = []
        self.url = ""

    def tell(self, *entries: dict[str, Any]) -> None:
        self.entries += [json.dumps(entry).encode() for entry in entries]

    def leave(self) -> None:
        self.away = True

    def come_back(self) -> None:
        self.away = False

    def stay(self) -> None:
        """Does nothing."""

    def respond(self, handler: Handler) -> None:
        path = urlsplit(handler.path).path
        self.asked.append(path)
        if path == "/checkpoint" and self.events:
            self.events.pop(0)()
        if self.away:
            refused = {"error": {"code": "not_cosigned", "message": "none is published"}}
            return answer(json.dumps(refused).encode(), 503)(handler)
        if path == "/checkpoint":
            return answer(self.checkpoint())(handler)
        begin, _, rest = path.removeprefix("/tile/entries/").partition(".p/")
        first = int(begin.replace("/", "").replace("x", "")) * 256
        bundle = self.entries[first : first + int(rest or 256)]
        return answer(b"".join(len(entry).to_bytes(2, "big") + entry for entry in bundle))(handler)

    def checkpoint(self) -> bytes:
        tree = _core.Tree()
        for entry in self.entries:
            tree.push(entry)
        return Key(self.origin).checkpoint(self.origin, tree.size, self.root or tree.root).encode()

    @property
    def bundles(self) -> list[str]:
        """The bundles that were requested since the last call."""
        asked, self.asked = self.asked, []
        return [path for path in asked if path != "/checkpoint"]


@contextlib.contextmanager
def auditor() -> Iterator[Auditor]:
    """A running auditor."""
    it = Auditor()
    with answering(it.respond) as url:
        it.url = url.partition("/jwks")[0]
        yield it

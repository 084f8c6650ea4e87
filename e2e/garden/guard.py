"""Parses raw bytes with the gateway's own code without a worker, and returns what it would send upstream."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.garden.reading import Message, Reading

LONGEST_COMPLETION = 4096  # maximum bytes of body that are added to a head without one
UPSTREAM_BODIES = 200  # bodies that are sent to providers; their head depends only on the length


@dataclass(frozen=True)
class Candidate:
    """Bytes that may be a request."""

    origin: str
    raw: bytes


@dataclass(frozen=True)
class Sorted:
    """The accepted requests, as received and as rewritten, and the requests that are sent upstream for them."""

    accepted: list[Message]
    rewritten: list[Message]
    upstream: list[Message]


def sort(guard: Path, upstream: Path, candidates: Iterable[Candidate]) -> Sorted:
    """Keeps the requests that the guard accepts, cut after the first request, without duplicates."""
    whole = _complete(guard, list({candidate.raw: candidate for candidate in candidates}.values()))
    accepted: dict[bytes, Message] = {}
    rewritten: dict[bytes, Candidate] = {}
    bodies: dict[bytes, None] = {}
    for candidate, verdict in zip(whole, _verdicts(guard, [each.raw for each in whole]), strict=True):
        if verdict["verdict"] != "accepted":
            continue
        raw = candidate.raw[: verdict["consumed"]]
        message = Message(candidate.origin, raw, Reading.of(verdict["read"]), verdict["keep_alive"])
        accepted.setdefault(raw, message)
        written = verdict["forwarded"].encode("latin-1")
        rewritten.setdefault(written, Candidate(f"{candidate.origin}, rewritten", written))
        bodies.setdefault(verdict["body"].encode("latin-1"))
    sent = _ask(upstream, list(bodies)[:UPSTREAM_BODIES])
    requests = [Candidate(f"upstream {number}", text.encode("latin-1")) for number, text in enumerate(sent)]
    return Sorted(
        list(accepted.values()),
        _reread(guard, [candidate for raw, candidate in rewritten.items() if raw not in accepted]),
        _reread(guard, requests),
    )


def _complete(guard: Path, candidates: list[Candidate]) -> list[Candidate]:
    """Adds the announced body to heads from a corpus."""
    completed = []
    for candidate, verdict in zip(candidates, _verdicts(guard, [each.raw for each in candidates]), strict=True):
        raw = candidate.raw
        if verdict["verdict"] == "incomplete" and verdict["missing"] == "length":
            raw += b"x" * min(verdict["bytes"], LONGEST_COMPLETION)
        elif verdict["verdict"] == "incomplete" and raw.endswith(b"\r\n\r\n"):
            raw += b"5\r\nhello\r\n0\r\n\r\n"
        completed.append(Candidate(candidate.origin, raw))
    return completed


def _reread(guard: Path, candidates: list[Candidate]) -> list[Message]:
    """Checks that the guard accepts the requests that we write, before the oracles get them."""
    messages = []
    for candidate, verdict in zip(candidates, _verdicts(guard, [each.raw for each in candidates]), strict=True):
        if verdict["verdict"] != "accepted" or verdict["consumed"] != len(candidate.raw):
            raise AssertionError(f"{candidate.origin}: we would not accept it ourselves: {candidate.raw!r}: {verdict}")
        messages.append(Message(candidate.origin, candidate.raw, Reading.of(verdict["read"]), verdict["keep_alive"]))
    return messages


def _verdicts(guard: Path, raws: list[bytes]) -> list[dict[str, Any]]:
    verdicts: list[dict[str, Any]] = _ask(guard, raws)
    return verdicts


def _ask(program: Path, raws: list[bytes]) -> list[Any]:
    framed = b"".join(struct.pack(">I", len(raw)) + raw for raw in raws)
    run = subprocess.run([program], input=framed, stdout=subprocess.PIPE, check=True, timeout=600)
    return [json.loads(line) for line in run.stdout.splitlines()]

#!/usr/bin/env python3
"""Sends every framing case to an HTTP/1.1 server and reports each verdict that differs from the specified one.

Each case uses its own connections: it is sent whole, split in two at several positions, and, if it must be refused,
followed by a second request that must not be answered. A refusal is the specified status, exactly one response, and a
closed connection. Exits with 1 on any difference, with 2 if it cannot connect. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

REFUSALS = {400, 408, 413, 414, 417, 431, 501, 505}
FOLLOWER = b"GET /proofgate-smuggled HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n\r\n"
SPLIT_PAUSE = 0.02  # seconds: long enough that the server reads the two parts separately on loopback


@dataclass(frozen=True)
class Door:
    """The address of the server."""

    host: str
    port: int
    timeout: float


@dataclass(frozen=True)
class Sending:
    """One way to send one case."""

    how: str
    parts: tuple[bytes, ...]


@dataclass(frozen=True)
class Answer:
    """The received answer: the final statuses in order, and whether the server closed the connection."""

    statuses: tuple[int, ...]
    closed: bool
    says_close: bool


@dataclass(frozen=True)
class Difference:
    """A case whose answer differs from the specification."""

    id: str
    row: str
    how: str
    expected: str
    got: str


def sendings(case: dict[str, Any], raw: bytes) -> Iterator[Sending]:
    """The ways to send a case: whole, in two parts, and with a follower that must stay unanswered."""
    yield Sending("whole", (raw,))
    end_of_head = raw.find(b"\r\n\r\n")
    middle_of_body = (end_of_head + 4 + len(raw)) // 2
    for split in sorted({1, end_of_head // 2, end_of_head + 2, end_of_head + 3, middle_of_body, len(raw) - 1}):
        if 0 < split < len(raw):
            yield Sending(f"split at {split}", (raw[:split], raw[split:]))
    if isinstance(case["expect"], int):
        yield Sending("followed", (raw + FOLLOWER,))


def exchange(door: Door, sending: Sending, cut_short: bool, may_stay_open: bool) -> Answer:
    """Sends the parts and reads until the server closes, or until one answer if the connection may stay open."""
    received = bytearray()
    closed = False
    with socket.create_connection((door.host, door.port), timeout=door.timeout) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for number, part in enumerate(sending.parts):
                if number:
                    time.sleep(SPLIT_PAUSE)
                connection.sendall(part)
            if cut_short:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # refused before the last part was sent: the answer can still be read
        try:
            while not (may_stay_open and statuses_of(bytes(received))):
                piece = connection.recv(65536)
                if not piece:
                    closed = True
                    break
                received += piece
        except TimeoutError:
            pass
        except ConnectionError:
            closed = True
    return Answer(tuple(statuses_of(bytes(received))), closed, b"connection: close" in bytes(received).lower())


def statuses_of(received: bytes) -> list[int]:
    """The final statuses in a sequence of responses that have a Content-Length, or end with the connection."""
    statuses: list[int] = []
    while received.startswith(b"HTTP/1."):
        head, separator, rest = received.partition(b"\r\n\r\n")
        if not separator:
            break
        status = int(head[9:12])
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if status >= 200:
            statuses.append(status)
        received = rest[length:]
    return statuses


def difference(case: dict[str, Any], sending: Sending, answer: Answer) -> Difference | None:
    """The difference between an answer and the specified one, or None."""
    expect = case["expect"]
    first = answer.statuses[0] if answer.statuses else None
    if expect == "accept":
        # Only the framing is tested, so 401, 404 or 405 is good. A 400 of the application is good if the connection
        # stays open. It is also good if a request with "Connection: close" has a body that is no JSON, but not if its
        # body is the chat request.
        excused = "\r\nConnection: close\r\n" in case["raw"] and not case["body"].startswith("{")
        ended = (answer.closed or answer.says_close) and not excused
        good = first is not None and first < 500 and not (first in REFUSALS and ended)
    elif expect == "drop":
        good = answer.closed and (first is None or first in REFUSALS)
    else:
        good = answer.statuses == (expect,) and answer.closed
    if good:
        return None
    got = ", ".join(map(str, answer.statuses)) or "no answer"
    return Difference(
        case["id"], case["row"], sending.how, str(expect), f"{got}; {'closed' if answer.closed else 'open'}"
    )


def probe(door: Door, case: dict[str, Any], raw: bytes) -> list[Difference]:
    """All differences of one case."""
    found = []
    accept, cut_short = case["expect"] == "accept", case["expect"] == "drop"
    for sending in sendings(case, raw):
        answer = exchange(door, sending, cut_short, may_stay_open=accept)
        if wrong := difference(case, sending, answer):
            found.append(wrong)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--key", help="API key to send (default: the one in the cases)")
    parser.add_argument("--only", help="send only the cases whose id contains this")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds to wait for an answer or a close")
    parser.add_argument("--jobs", type=int, default=16, help="connections at a time")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()

    file = json.loads(Path(__file__).with_name("cases.json").read_text())
    cases = [case for case in file["cases"] if not arguments.only or arguments.only in case["id"]]
    key = file["key"].encode()
    raws = [case["raw"].encode("latin-1").replace(key, (arguments.key or file["key"]).encode()) for case in cases]
    door = Door(arguments.host, arguments.port, arguments.timeout)
    try:
        with ThreadPoolExecutor(arguments.jobs) as pool:
            results = list(pool.map(lambda pair: probe(door, *pair), zip(cases, raws, strict=True)))
    except OSError as error:
        print(f"cannot connect to {door.host}:{door.port}: {error}", file=sys.stderr)
        return 2
    differences = [wrong for result in results for wrong in result]
    failed = sum(1 for result in results if result)
    if arguments.json:
        summary = {
            "cases": len(cases),
            "failed": failed,
            "differences": [asdict(wrong) for wrong in differences],
        }
        print(json.dumps(summary, indent=1))
    else:
        for wrong in differences:
            print(f"{wrong.id:34} {wrong.how:14} expected {wrong.expected:7} got {wrong.got:16} ({wrong.row})")
        print(f"{len(cases) - failed} of {len(cases)} cases as specified, {failed} not")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())

"""Sends a request and a following request, and collects the parser's readings."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from e2e.garden.oracles import Oracle
from e2e.garden.reading import Message, Reading

FOLLOWER = b"POST /garden/follower HTTP/1.1\r\nHost: garden\r\nConnection: close\r\nContent-Length: 8\r\n\r\nfollower"
FOLLOWER_READING = Reading("POST", "/garden/follower", "garden", "length", 8, hashlib.sha256(b"follower").hexdigest())
ANSWER_SECONDS = 60.0
CONNECTIONS = 24


@dataclass(frozen=True)
class Answers:
    """The answers on one connection: readings in order, then the status of a refusal if there is one."""

    readings: tuple[Reading, ...]
    refusal: int | None = None
    unfinished: bool = False
    served: int = 0


async def ask(oracle: Oracle, messages: Sequence[Message], progress: Callable[[], None]) -> list[Answers]:
    """The answers of one oracle to all messages, each on a separate connection."""
    room = asyncio.Semaphore(CONNECTIONS)

    async def one(message: Message) -> Answers:
        async with room:
            # If a request ends the connection, bytes after it would be an error themselves.
            answers = await _exchange(oracle.port, message.raw + FOLLOWER * message.keep_alive)
        progress()
        return answers

    return await asyncio.gather(*map(one, messages))


async def _exchange(port: int, data: bytes) -> Answers:
    received = b""
    unfinished = False
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            writer.write(data)
            while piece := await reader.read(65536):
                received += piece
    except ConnectionError:
        pass
    except TimeoutError:
        unfinished = True
    finally:
        writer.close()
    return answers_in(received, unfinished)


def answers_in(received: bytes, unfinished: bool) -> Answers:
    """Splits responses without bodies, up to the first that is not a reading."""
    readings: list[Reading] = []
    served = 0
    while received.startswith(b"HTTP/1."):
        head, separator, received = received.partition(b"\r\n\r\n")
        if not separator:
            break
        status = int(head[9:12])
        if status < 200:
            continue
        lines = (line.partition(b":") for line in head.split(b"\r\n"))
        read = next((value for name, _, value in lines if name.lower() == b"x-read"), None)
        if status != 200 or read is None:
            return Answers(tuple(readings), status, unfinished, served)
        parsed = json.loads(read)
        served = parsed.get("served", 0)
        readings.append(Reading.of(parsed))
    return Answers(tuple(readings), None, unfinished, served)

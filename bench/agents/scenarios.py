"""Measurements of the product and of plain HAProxy with agents' requests: bodies, sessions, streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from bench.agents import load, session
from bench.agents.load import Play
from bench.agents.session import CHAT, MESSAGES, Dialect
from bench.cell import Cell
from bench.load import streams
from bench.system import System

CONNECTIONS = 16
#: Number of turns of a session whose last turn is measured.
TURNS = 20
STREAMS = 100
#: The names of the turns in the result.
PLAYS: dict[str, Play] = {"first": "first", "20th": "next"}
_VERSION = {"anthropic-version": "2023-06-01"}

Measure = Callable[[System, Path], Cell]


@dataclass(frozen=True)
class Extent:
    """The extent of the measurements."""

    #: Sizes of chat completion bodies, in KB; messages have only one size.
    kilobytes: tuple[int, ...]
    messages_kilobytes: int
    sessions: int
    session_turns: int
    session_kilobytes: int
    milliseconds: int


FULL = Extent((30, 120, 450), 120, sessions=20, session_turns=50, session_kilobytes=450, milliseconds=1_500)
QUICK = Extent((120,), 120, sessions=20, session_turns=10, session_kilobytes=120, milliseconds=500)


def bodies(stream_load: Path, extent: Extent) -> Iterator[tuple[str, Measure]]:
    """Requests of the last of 20 turns: of an unseen session, and after a seen history."""
    sizes = [(CHAT, size) for size in extent.kilobytes] + [(MESSAGES, extent.messages_kilobytes)]
    for dialect, kilobytes in sizes:
        for name, play in PLAYS.items():
            asked = _asked(stream_load, dialect, kilobytes, TURNS, play, CONNECTIONS, extent.milliseconds)
            yield f"{dialect.name}-{kilobytes}KB-{name}", asked


def sessions(stream_load: Path, extent: Extent) -> Iterator[tuple[str, Measure]]:
    """Many concurrent whole sessions, each on a separate connection."""
    point = f"{extent.sessions}x{extent.session_turns}"
    turns, kilobytes = extent.session_turns, extent.session_kilobytes
    yield point, _asked(stream_load, CHAT, kilobytes, turns, "whole", extent.sessions, extent.milliseconds)


def tool_streams(stream_load: Path, seconds: int) -> Iterator[tuple[str, Measure]]:
    """Streams that think, speak and call a tool, in answer to a session's first turn."""
    for dialect in (CHAT, MESSAGES):
        yield f"{dialect.name}-s{STREAMS}", _streamed(stream_load, dialect, seconds)


def _asked(
    stream_load: Path, dialect: Dialect, kilobytes: int, turns: int, play: Play, connections: int, milliseconds: int
) -> Measure:
    def measure(system: System, folder: Path) -> Cell:
        file = folder / "session"
        file.write_text(made(dialect, kilobytes << 10, turns).file())
        return load.measure(stream_load, speaking(system, dialect), file, play, connections, milliseconds)

    return measure


def _streamed(stream_load: Path, dialect: Dialect, seconds: int) -> Measure:
    def measure(system: System, folder: Path) -> Cell:
        body = folder / "stream.json"
        text = made(dialect, 30 << 10, TURNS).body(1)
        body.write_text('{"stream":true,' + text.removeprefix("{"))
        asked = speaking(system, dialect)
        process = asked.process
        return streams.measure(stream_load, asked.address, asked.path, asked.headers, body, STREAMS, seconds, process)

    return measure


def speaking(system: System, dialect: Dialect) -> System:
    """A system with the settings for a client of this dialect."""
    headers = {**system.headers, **(_VERSION if dialect is MESSAGES else {})}
    return replace(system, path=dialect.path, model=dialect.model, headers=headers)


@cache
def made(dialect: Dialect, size: int, turns: int) -> session.Session:
    """A session, which is made only once."""
    return session.make(dialect, size, turns)

"""The scenarios of every system, in two blocks: with an upstream that answers immediately, and with a paced one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import request
from bench.agents import scenarios as agents
from bench.cell import Cell
from bench.load import open_loop, streams, wrk
from bench.system import Candidate, System
from bench.systems import BEFORE, NO_RULES, PLAIN_PROXY, PRODUCT, SPINNING

OPEN_RATE = 1_000
PROMPT_BYTES = 1_024
CONNECTIONS = (1, 16, 64)
LARGER_PROMPTS_KB = (16, 128)
ATTACKS = ("bad_key", "malformed", "blocked_prompt")
#: The last number is about the maximum for the load core, which is nearly full when it calls the upstream directly.
STREAMS = (100, 1_000, 1_500)
#: The systems that get agents' requests.
AGENTS = (PLAIN_PROXY, PRODUCT, NO_RULES, BEFORE)


@dataclass(frozen=True)
class Length:
    """Seconds of each measurement, by scenario."""

    closed_loop: int
    #: Long enough that a slow system answers each concurrent request more than a few times.
    slow_closed_loop: int
    open_loop: int
    attacks: int
    streams: int
    #: Milliseconds of the agents' scenarios, and their content.
    agents: agents.Extent


FULL = Length(closed_loop=1, slow_closed_loop=3, open_loop=2, attacks=1, streams=3, agents=agents.FULL)
QUICK = Length(closed_loop=1, slow_closed_loop=2, open_loop=2, attacks=1, streams=2, agents=agents.QUICK)


@dataclass(frozen=True)
class Tools:
    """The load generators that were built."""

    oha: Path
    stream_load: Path


@dataclass(frozen=True)
class Scenario:
    """One planned measurement, `group/point` in the result."""

    group: str
    point: str
    measure: Callable[[System, Path], Cell]


def _headers(system: System) -> dict[str, str]:
    return {**system.headers, "Content-Type": "application/json"}


def closed(connections: int, size: int, seconds: int) -> Callable[[System, Path], Cell]:
    """A closed loop with a prompt of `size` bytes."""

    def measure(system: System, folder: Path) -> Cell:
        body = request.chat(request.prompt(size), system.model, max_tokens=system.max_tokens)
        script = request.write_script(folder / "request.lua", system.path, _headers(system), body)
        return wrk.measure(system.url, script, connections, seconds, system.process)

    return measure


def _open(tools: Tools, seconds: int) -> Callable[[System, Path], Cell]:
    def measure(system: System, folder: Path) -> Cell:
        body = folder / "body.json"
        body.write_text(request.chat(request.prompt(PROMPT_BYTES), system.model))
        return open_loop.measure(tools.oha, system.url, system.headers, body, OPEN_RATE, seconds, system.process)

    return measure


def _attack(kind: str, seconds: int) -> Callable[[System, Path], Cell]:
    def measure(system: System, folder: Path) -> Cell:
        script = folder / "attack.lua"
        text = request.BLOCKED_PROMPT if kind == "blocked_prompt" else request.prompt(PROMPT_BYTES)
        body = request.chat(text, system.model)
        if kind == "malformed":
            request.write_raw_script(script, request.malformed(system.path, _headers(system), body))
        else:
            headers = _headers(system)
            if kind == "bad_key":
                headers |= system.with_key(request.WRONG_KEY)
            request.write_script(script, system.path, headers, body)
        return wrk.attack(system.url, script, 16, seconds, system.process)

    return measure


def streamed(stream_load: Path, count: int, seconds: int) -> Callable[[System, Path], Cell]:
    """`count` concurrent streams."""

    def measure(system: System, folder: Path) -> Cell:
        body = folder / "stream.json"
        text = request.prompt(PROMPT_BYTES)
        body.write_text(request.chat(text, system.model, stream=True, max_tokens=system.max_tokens))
        return streams.measure(
            stream_load,
            system.address,
            system.path,
            system.headers,
            body,
            count,
            seconds,
            system.process,
        )

    return measure


def at_once(candidate: Candidate, tools: Tools, length: Length) -> Iterator[Scenario]:
    """The scenarios with an upstream that answers immediately."""
    if candidate.name in AGENTS:
        for point, ask in agents.bodies(tools.stream_load, length.agents):
            yield Scenario("agents", point, ask)
        for point, ask in agents.sessions(tools.stream_load, length.agents):
            yield Scenario("sessions", point, ask)
    if candidate.name == NO_RULES:
        return
    seconds = length.slow_closed_loop if candidate.slow else length.closed_loop
    for connections in CONNECTIONS:
        measure = closed(connections, PROMPT_BYTES, seconds)
        yield Scenario("closed_loop", f"c{connections}", measure)
    if candidate.name == SPINNING:
        return
    for kilobytes in LARGER_PROMPTS_KB:
        measure = closed(16, kilobytes << 10, seconds)
        yield Scenario("prompts", f"{kilobytes}KB", measure)
    if not candidate.slow:
        yield Scenario("open_loop", "at_once", _open(tools, length.open_loop))
    for kind in ATTACKS:
        if kind in candidate.refuses:
            yield Scenario("attacks", kind, _attack(kind, length.attacks))


def paced(candidate: Candidate, tools: Tools, length: Length) -> Iterator[Scenario]:
    """The scenarios with a paced upstream, like a model."""
    if candidate.name == SPINNING:
        return
    if candidate.name in AGENTS:
        for point, ask in agents.tool_streams(tools.stream_load, length.streams):
            yield Scenario("tool_streams", point, ask)
    for count in STREAMS:
        if count <= 100 or not (candidate.slow or candidate.name == NO_RULES):
            yield Scenario("streams", f"s{count}", streamed(tools.stream_load, count, length.streams))
    if not candidate.slow and candidate.name != NO_RULES:
        yield Scenario("open_loop", "after_50ms", _open(tools, length.open_loop))

"""Goes through the exchanges of a ledger and replays each."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from proofgate import _core
from proofgate.replay.engines import Engines
from proofgate.replay.recorded import Recorded
from proofgate.replay.sources import Source

#: Exchanges that are handed over at once.
_AT_ONCE = 64

Direction = Literal["request", "response"]


@dataclass(frozen=True)
class Replay:
    """One direction of an exchange, replayed."""

    recorded: Recorded
    direction: Direction
    result: str
    """`same`, `consistent`, `differs` or `not_replayable`."""
    reason: str | None
    """Why not all, or nothing, was compared."""
    before: dict[str, Any] | None
    """What the record says, where it was compared."""
    after: dict[str, Any] | None
    """What the rules come to, where they did."""
    body: bytes | None


def exchanges(core: _core.RecordedExchanges, limit: int | None) -> Iterator[Recorded]:
    """The exchanges of a ledger, at most `limit`."""

    def handed() -> Iterator[_core.RecordedExchange]:
        while batch := core.take(_AT_ONCE):
            yield from batch

    return map(Recorded.of, itertools.islice(handed(), limit))


def replay(found: Iterable[Recorded], source: Source, engines: Engines) -> Iterator[list[Replay]]:
    """Replays each exchange: its request, if a policy decided about it, and its answer, if there is one."""
    for recorded in found:
        engine = engines(recorded)
        request = _one(recorded, "request", source, engine)
        replays = [] if request is None else [request]
        if recorded.completion is not None:
            response = _one(recorded, "response", source, engine)
            replays += [] if response is None else [response]
        yield replays


def _one(
    recorded: Recorded, direction: Direction, source: Source, engine: _core.Replayer | str
) -> Replay | None:
    if isinstance(engine, str):
        if not recorded.was_admitted and not recorded.begin["code"].startswith("policy_"):
            return None
        return Replay(recorded, direction, "not_replayable", engine, None, None, None)
    body = source.body(recorded, direction == "response")
    content = body if isinstance(body, bytes) else None
    compare = engine.request if direction == "request" else engine.response
    text = compare(recorded.core, content)
    if text is None:
        return None
    compared = json.loads(text)
    result, reason = compared["result"], compared.get("reason")
    if reason == "not_stored" and isinstance(body, str):
        reason = body
    if content is not None and not recorded.is_committed:
        # Nothing binds it to the record but its length.
        reason = reason or "uncommitted"
    return Replay(
        recorded, direction, result, reason, compared["recorded"], compared.get("replayed"), content
    )


def of_this_version(replays: Iterable[list[Replay]]) -> Iterator[list[Replay]]:
    """What another version of the gateway decided otherwise is no contradiction: its rules and its engine may
    have been others."""
    for replayed in replays:
        yield [_by_version(replay) for replay in replayed]


def _by_version(replay: Replay) -> Replay:
    if replay.result != "differs" or replay.recorded.core.version == _core.__version__:
        return replay
    return Replay(
        replay.recorded,
        replay.direction,
        "not_replayable",
        "other_version",
        replay.before,
        replay.after,
        replay.body,
    )

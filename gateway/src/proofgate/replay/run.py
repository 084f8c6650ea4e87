"""Replays all exchanges of a ledger."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from proofgate import _core
from proofgate.replay.engines import Engines
from proofgate.replay.replay_exchange import ReplayExchange
from proofgate.replay.sources import BodySource

#: Number of exchanges in one batch.
_BATCH_SIZE = 64

Direction = Literal["request", "response"]


@dataclass(frozen=True)
class Replay:
    """The replay of one direction of an exchange."""

    exchange: ReplayExchange
    direction: Direction
    result: str
    """`same`, `consistent`, `differs` or `not_replayable`."""
    reason: str | None
    """Why the verdict was compared only in part, or not at all."""
    before: dict[str, Any] | None
    """The recorded verdict, if it was compared."""
    after: dict[str, Any] | None
    """The verdict of the replay, if the rules reached a verdict."""
    body: bytes | None


def exchanges(core: _core.RecordedExchanges, limit: int | None) -> Iterator[ReplayExchange]:
    """Yields the exchanges of a ledger, at most `limit`; None: all."""

    def handed() -> Iterator[_core.RecordedExchange]:
        while batch := core.take(_BATCH_SIZE):
            yield from batch

    return map(ReplayExchange.from_core, itertools.islice(handed(), limit))


def replay(found: Iterable[ReplayExchange], source: BodySource, engines: Engines) -> Iterator[list[Replay]]:
    """Replays each exchange: its request, if a policy decided about it, and its response, if there is one."""
    for recorded in found:
        engine = engines(recorded)
        request = _replay_direction(recorded, "request", source, engine)
        replays = [] if request is None else [request]
        if recorded.completion_record is not None:
            response = _replay_direction(recorded, "response", source, engine)
            replays += [] if response is None else [response]
        yield replays


def _replay_direction(
    recorded: ReplayExchange, direction: Direction, source: BodySource, engine: _core.Replayer | str
) -> Replay | None:
    if isinstance(engine, str):
        if not recorded.was_admitted and not recorded.start_record["code"].startswith("policy_"):
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
        # Only the length connects the body to the record.
        reason = reason or "uncommitted"
    return Replay(
        recorded, direction, result, reason, compared["recorded"], compared.get("replayed"), content
    )


def excuse_version_differences(replays: Iterable[list[Replay]]) -> Iterator[list[Replay]]:
    """Marks different verdicts of another version of the gateway as not comparable, because its rules and its
    engine may differ."""
    for replayed in replays:
        yield [_excuse_version_difference(replay) for replay in replayed]


def _excuse_version_difference(replay: Replay) -> Replay:
    if replay.result != "differs" or replay.exchange.core.version == _core.__version__:
        return replay
    return Replay(
        replay.exchange,
        replay.direction,
        "not_replayable",
        "other_version",
        replay.before,
        replay.after,
        replay.body,
    )

"""Watches share connections and lose no events."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from proofgate_operator import metrics
from proofgate_operator.handlers.requeue import Requeues
from proofgate_operator.handlers.secret_references import SecretReferences
from proofgate_operator.handlers.watches import SELECTORS, Watches
from proofgate_operator.kube import informer, multiplex
from proofgate_operator.kube.client import Client
from tests.api_emulator import Emulator
from tests.fake_cluster import FakeCluster
from tests.h2_front import Front
from tests.operators import until
from tests.test_watches import service

#: More than the streams of one connection.
SPACES = tuple(f"team-{number}" for number in range(10))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer, "_FIRST_PAUSE_SECONDS", 0.001)


class Shared:
    """A cluster behind a front, and its client."""

    def __init__(self, emulator: Emulator, front: Front, client: Client, watches: Watches) -> None:
        self.emulator, self.front, self.client, self.watches = emulator, front, client, watches

    def make(self, name: str) -> None:
        made = service(name)
        made["metadata"] = {**made["metadata"], "namespace": SPACES[-1]}  # type: ignore[dict-item]
        self.emulator.cluster.put(made)

    def knows(self, name: str) -> Callable[[], object]:
        return lambda: self.client.store.get("Service", SPACES[-1], name)

    @property
    def open(self) -> int:
        """The number of streams that the front serves now."""
        return sum(len(session.streams) for session in self.front.sessions)


@contextlib.asynccontextmanager
async def shared(
    folder: Path, streams_each: int = 100, protocols: tuple[str, ...] = ("h2", "http/1.1")
) -> AsyncIterator[Shared]:
    emulator = Emulator(FakeCluster())
    async with emulator.serve() as plain:
        front = Front(plain._api.configuration.host, streams_each, protocols)
        async with front.serve(folder) as client:
            watches = Watches(client, SPACES, SecretReferences(), Requeues())
            watches.start()
            try:
                await asyncio.wait_for(watches.synced(), 300)
                await until(lambda: len(emulator.watches) >= len(SPACES) * len(SELECTORS))
                yield Shared(emulator, front, client, watches)
            finally:
                await watches.stop()


async def test_a_hundred_and_thirty_watches_need_two_connections(tmp_path: Path) -> None:
    async with shared(tmp_path) as seen:
        assert seen.open == len(SPACES) * len(SELECTORS) == 130
        assert len(seen.front.sessions) == 2
        assert metrics.WATCH_CONNECTIONS.collect()[0].samples[0].value == 2
        seen.make("one")
        await until(seen.knows("one"))


async def test_no_connection_carries_more_than_the_server_says(tmp_path: Path) -> None:
    async with shared(tmp_path, streams_each=13) as seen:
        assert [len(session.streams) for session in seen.front.sessions] == [13] * 10


async def test_a_server_without_http_2_is_watched_as_ever(tmp_path: Path) -> None:
    async with shared(tmp_path, protocols=("http/1.1",)) as seen:
        assert not seen.front.sessions
        seen.make("one")
        await until(seen.knows("one"))


async def test_a_server_that_goes_away_is_watched_again_where_it_was(tmp_path: Path) -> None:
    async with shared(tmp_path) as seen:
        lists = seen.emulator.cluster.requests.count("GET Service ")
        for session in list(seen.front.sessions):
            session.go_away()
        seen.make("one")
        await until(seen.knows("one"))
        assert seen.emulator.cluster.requests.count("GET Service ") == lists


async def test_a_connection_that_falls_silent_is_given_up_long_before_its_watches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiplex, "_PING_SECONDS", 0.05)
    async with shared(tmp_path) as seen:
        silent = list(seen.front.sessions)
        seen.front.mute = True
        await until(lambda: all(session.pings for session in silent))
        await until(lambda: len(seen.front.sessions) > len(silent))
        seen.front.mute = False
        seen.make("one")
        await until(seen.knows("one"))


async def test_a_watch_that_nobody_needs_any_more_leaves_its_room(tmp_path: Path) -> None:
    async with shared(tmp_path) as seen:
        await seen.watches.stop()
        await until(lambda: seen.open == 0)
        again = Watches(seen.client, SPACES, SecretReferences(), Requeues())
        again.start()
        try:
            await until(lambda: seen.open == 130)
            assert len(seen.front.sessions) == 2
        finally:
            await again.stop()


async def test_a_large_object_arrives_whole(tmp_path: Path) -> None:
    async with shared(tmp_path) as seen:
        seen.emulator.cluster.put(
            {
                **service("large"),
                "metadata": {**service("large")["metadata"], "namespace": SPACES[-1]},  # type: ignore[dict-item]
                "spec": {"long": "x" * 3_000_000},
            }
        )
        await until(seen.knows("large"))

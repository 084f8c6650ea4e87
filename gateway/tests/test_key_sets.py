"""Times at which issuers' key sets are fetched, and the set that stays after a failure; with a test clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, tzinfo
from typing import cast

import pytest
from conftest import PATIENCE_SECONDS, ConfigDirectory, started
from signing import key_set

from proofgate import _core
from proofgate.config import load
from proofgate.key_set_fetch import KeySetFetchError
from proofgate.key_sets import KeySets

ISSUER = "https://login.example.com/"
TWO_KEYS = key_set("a", "b")


class Issuer:
    """One issuer's key sets; `now` is the clock, `answer` is the result of a fetch."""

    def __init__(self, directory: ConfigDirectory) -> None:
        self.now = 1000.0
        self.spread = 0.0
        self.answer: str | KeySetFetchError = TWO_KEYS
        self.fetched_at: list[float] = []
        self.directory = directory
        self.source("jwksURL: https://login.example.com/jwks")
        config = load(directory.file)
        self.running = started(config)
        self.worker = self.running.__enter__()
        self.key_sets = KeySets(
            cast("_core.Worker", self.worker),
            fetch=self.fetch,
            clock=lambda: self.now,
            spread=lambda: self.spread,
        )
        self.key_sets.apply_config(config)

    def source(self, source: str, *more: str) -> None:
        """Writes the location of the issuer's keys."""
        text = self.directory.file.read_text().partition("jwt:")[0]
        entries = [f"{{issuer: {ISSUER}, audiences: [a], {source}}}", *more]
        self.directory.file.write_text(text + f"jwt: {{issuers: [{', '.join(entries)}]}}\n")

    def fetch(self, url: str) -> str:
        assert url.startswith("https://")
        self.fetched_at.append(self.now)
        if isinstance(self.answer, KeySetFetchError):
            raise self.answer
        return self.answer

    async def at(self, now: float) -> None:
        """Runs one tick at `now`, and waits for everything that it starts."""
        self.now = now
        self.key_sets.tick()
        await self.key_sets.wait_until_idle(PATIENCE_SECONDS)

    async def every_second_until(self, end: float) -> None:
        while self.now < end:
            await self.at(self.now + 1)

    def status(self) -> dict[str, object]:
        (status,) = self.key_sets.status()
        return status


@pytest.fixture
def issuer(config_directory: ConfigDirectory) -> Iterator[Issuer]:
    issuer = Issuer(config_directory)
    yield issuer
    issuer.running.__exit__(None, None, None)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await scenario()

    asyncio.run(whole())


def test_keys_are_fetched_at_once_and_every_refresh(issuer: Issuer) -> None:
    async def scenario() -> None:
        await issuer.at(1000)
        await issuer.every_second_until(1700)

    run(scenario)
    assert issuer.fetched_at == [1000, 1300, 1600]
    assert issuer.worker.key_sets == {ISSUER: TWO_KEYS}
    status = issuer.status()
    assert (status["source"], status["keys"], status["error"]) == ("url", 2, None)
    assert status["updated_at"] is not None


@pytest.mark.parametrize(("spread", "second"), [(-1.0, 1270), (1.0, 1330)])
def test_workers_do_not_ask_all_at_once(issuer: Issuer, spread: float, second: float) -> None:
    async def scenario() -> None:
        issuer.spread = spread
        await issuer.at(1000)
        await issuer.every_second_until(1400)

    run(scenario)
    assert issuer.fetched_at == [1000, second]


@pytest.mark.parametrize("step", [1, 7200, 86_400, 40 * 86_400, 3652 * 86_400])
@pytest.mark.parametrize("direction", [1, -1])
def test_a_wall_clock_that_is_set_changes_nothing_of_when_keys_are_fetched(
    issuer: Issuer, step: int, direction: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wall(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Wall:
            moved = 1_800_000_000 + (direction * step if issuer.now > 1100 else 0)
            return cls.fromtimestamp(moved, tz)

    monkeypatch.setattr("proofgate.key_sets.datetime", Wall)

    async def scenario() -> None:
        await issuer.at(1000)
        await issuer.every_second_until(1700)

    run(scenario)
    assert issuer.fetched_at == [1000, 1300, 1600]
    assert issuer.worker.key_sets == {ISSUER: TWO_KEYS}


def test_a_token_with_an_unknown_key_brings_the_fetch_forward(issuer: Issuer) -> None:
    async def scenario() -> None:
        await issuer.at(1000)
        await issuer.every_second_until(1050)
        issuer.worker.wanted = [ISSUER, "https://somebody.else/"]
        await issuer.every_second_until(1100)

    run(scenario)
    assert issuer.fetched_at == [1000, 1051]


def test_made_up_key_ids_cost_an_issuer_one_fetch_in_ten_seconds(issuer: Issuer) -> None:
    async def scenario() -> None:
        for second in range(31):
            issuer.worker.wanted = [ISSUER]
            await issuer.at(1000 + second)

    run(scenario)
    assert issuer.fetched_at == [1000, 1010, 1020, 1030]


def test_a_failing_issuer_is_asked_ever_more_rarely_even_when_it_is_wanted(issuer: Issuer) -> None:
    async def scenario() -> None:
        issuer.answer = KeySetFetchError("unreachable", "not reachable")
        while issuer.now < 2000:
            issuer.worker.wanted = [ISSUER]
            await issuer.at(issuer.now + 1)

    run(scenario)
    pauses = [
        later - earlier for earlier, later in zip(issuer.fetched_at, issuer.fetched_at[1:], strict=False)
    ]
    assert pauses == [10, 20, 40, 80, 160, 300, 300]


def test_the_old_keys_stay_when_new_ones_cannot_be_had(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        await issuer.at(1000)
        issuer.answer = KeySetFetchError("http_status", "the response has status 503")
        await issuer.at(1300)

    run(scenario)
    assert issuer.worker.key_sets == {ISSUER: TWO_KEYS}
    status = issuer.status()
    assert (status["keys"], status["error"]) == (2, "http_status")
    assert (
        "the response has status 503; the worker still uses 2 previously fetched keys, next attempt in 10 s"
        in caplog.text
    )


def test_an_issuer_that_comes_back_is_believed_again(
    issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        issuer.answer = KeySetFetchError("timeout", "no complete response")
        await issuer.at(1000)
        assert issuer.status()["keys"] is None
        issuer.answer = TWO_KEYS
        await issuer.at(1010)

    run(scenario)
    assert "its tokens are refused, next attempt in 10 s" in caplog.text
    status = issuer.status()
    assert (status["keys"], status["error"]) == (2, None)


def test_an_answer_that_the_core_refuses_is_a_failure(issuer: Issuer) -> None:
    async def scenario() -> None:
        issuer.answer = "<html>"
        await issuer.at(1000)

    run(scenario)
    status = issuer.status()
    assert (status["keys"], status["error"]) == (None, "config")


def test_a_defect_costs_one_fetch_and_not_the_refresher(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        with monkeypatch.context() as broken:
            broken.setattr(issuer.worker, "set_key_set", lambda *_: 1 // 0)
            await issuer.at(1000)
        assert issuer.status()["error"] == "internal"
        await issuer.at(1010)

    run(scenario)
    assert issuer.status()["keys"] == 2


def test_one_fetch_of_an_issuer_runs_at_a_time(issuer: Issuer) -> None:
    begun, answered = threading.Event(), threading.Event()

    def slow(url: str) -> str:
        begun.set()
        assert answered.wait(PATIENCE_SECONDS)
        return Issuer.fetch(issuer, url)

    issuer.key_sets._fetch = slow

    async def scenario() -> None:
        for second in (0, 20, 400):
            issuer.now = 1000.0 + second
            issuer.key_sets.tick()
        assert await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
        answered.set()
        await issuer.key_sets.wait_until_idle(PATIENCE_SECONDS)

    run(scenario)
    assert len(issuer.fetched_at) == 1


def test_a_new_configuration_keeps_what_is_known_and_fetches_what_is_new(issuer: Issuer) -> None:
    other = "{issuer: other, audiences: [a], jwksURL: https://other.example/jwks, refreshSeconds: 60}"

    async def scenario() -> None:
        await issuer.at(1000)
        issuer.source("jwksURL: https://login.example.com/jwks", other)
        config = load(issuer.directory.file)
        issuer.worker.reload(config.to_core_json(0))
        issuer.key_sets.apply_config(config)
        await issuer.at(1001)

    run(scenario)
    assert issuer.fetched_at == [1000, 1001]
    assert [status["keys"] for status in issuer.key_sets.status()] == [2, 2]


def test_another_address_of_an_issuer_is_asked_at_once(issuer: Issuer) -> None:
    async def scenario() -> None:
        await issuer.at(1000)
        issuer.source("jwksURL: https://login.example.com/new")
        issuer.key_sets.apply_config(load(issuer.directory.file))
        await issuer.at(1001)

    run(scenario)
    assert issuer.fetched_at == [1000, 1001]


def test_what_is_fetched_for_an_issuer_that_is_gone_is_dropped(issuer: Issuer) -> None:
    async def scenario() -> None:
        issuer.now = 1000
        issuer.key_sets.tick()
        issuer.directory.write("jwks.json", '{"keys": []}')
        issuer.source("jwksFile: jwks.json")
        config = load(issuer.directory.file)
        issuer.key_sets.apply_config(config)
        issuer.key_sets.load_files(config)
        await issuer.key_sets.wait_until_idle(PATIENCE_SECONDS)

    run(scenario)
    assert issuer.worker.key_sets == {ISSUER: '{"keys": []}'}
    assert issuer.status()["source"] == "file"


def test_the_first_round_waits_for_every_issuer(issuer: Issuer) -> None:
    async def scenario() -> None:
        await issuer.key_sets.run_first_round()

    run(scenario)
    assert issuer.status()["keys"] == 2

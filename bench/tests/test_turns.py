"""Systems take turns: all run, one is awake."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import scenarios, visits
from bench.cell import Cell
from bench.processes import Pinned, StartError
from bench.scenarios import Scenario
from bench.summary import Record
from bench.system import Candidate, System
from bench.turns import take_turns

said: list[str] = []


class Sleeper(Pinned):
    """A fake process that records when it is woken."""

    def pause(self) -> None:
        said.append(f"{self.log.name} sleeps")

    @contextmanager
    def awake(self) -> Iterator[None]:
        said.append(f"{self.log.name} wakes")
        yield
        self.pause()

    def resident_megabytes(self) -> float:
        return 1.0


def candidate(name: str) -> Candidate:
    @contextmanager
    def start(folder: Path, upstream: str) -> Iterator[System]:
        if name == "broken":
            raise StartError("no licence")
        yield System(upstream, Sleeper(0, folder))

    return Candidate(name, "", lambda: "1", start)


def measured(record: Record, system: str) -> list[tuple[int, str]]:
    return [(one.turn, one.point) for one in record.samples if one.system == system and one.group == "closed_loop"]


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    said.clear()
    nothing: Callable[..., Cell] = lambda *_: Cell({})  # noqa: E731
    monkeypatch.setattr(visits, "greet", nothing)
    monkeypatch.setattr(scenarios, "closed", lambda *_: nothing)

    def plan(candidate: Candidate) -> Iterator[Scenario]:
        for point in ("c1", "c16"):
            if (candidate.name, point) != ("b", "c16"):
                yield Scenario("closed_loop", point, lambda system, _: Cell({"rate": len(system.process.log.name)}))

    record = Record()
    names = ("a", "broken", "b")
    take_turns(2, [candidate(name) for name in names], "127.0.0.1:1", tmp_path, plan, record, paced=False)
    return record


def test_every_system_is_asked_what_its_plan_says_in_every_turn(record: Record) -> None:
    assert measured(record, "a") == [(1, "c1"), (1, "c16"), (2, "c1"), (2, "c16")]
    assert measured(record, "b") == [(1, "c1"), (2, "c1")]


def test_one_is_awake_at_a_time_and_another_one_begins_each_turn(record: Record) -> None:
    assert said[:2] == ["a sleeps", "b sleeps"]
    woken = [entry for entry in said[2:] if entry.endswith("wakes")]
    assert woken == ["a wakes", "b wakes", "a wakes", "b wakes", "a wakes", "a wakes"]
    assert [entry.split()[0] for entry in said[2::2]] == [entry.split()[0] for entry in said[3::2]]


def test_a_system_that_does_not_start_is_left_out_with_its_reason(record: Record) -> None:
    assert record.voided == [{"turn": 0, "system": "broken", "scenario": "at once/start", "reason": "no licence"}]

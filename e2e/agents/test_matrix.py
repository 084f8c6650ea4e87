"""Every client before every provider, with its defaults and all rules on: it works, or what is known of it comes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import pytest

from e2e.agents.cells import ALL, ROWS, Row
from e2e.agents.commands import TASKS, Command
from e2e.agents.driven import driver
from e2e.agents.gateway import Bench, bench
from e2e.agents.results import Results, write
from e2e.agents.scenarios import SCENARIOS, Client, result_of


@dataclass(frozen=True)
class Cell:
    """A client before a provider."""

    row: Row
    provider: str

    @property
    def name(self) -> str:
        return f"{self.row.client}-{self.row.api}-{self.provider}"

    def client(self, ready: Bench) -> AbstractContextManager[Client]:
        """The client, set up for a gateway."""
        row, model = self.row, self.row.model(self.provider)
        if row.runs in TASKS:
            return nullcontext(Command(row.runs, row.api, model, ready))
        return driver(ready, row.runs, row.environment, row.api, model)


@dataclass(frozen=True)
class Running:
    """A cell in action."""

    cell: Cell
    client: Client
    bench: Bench


def runs() -> list[Any]:
    """Each cell with what is tried of it. Of the AI SDK, which is small, `make test` runs what waits for nothing."""
    found = []
    for row in ROWS:
        for cell in (Cell(row, provider) for provider in ALL):
            for name in ["turn"] if row.expected(cell.provider, "turn") else SCENARIOS:
                sampled = row.client == "ai" and cell.provider in row.providers and name != "retries"
                marks = [pytest.mark.sample] if sampled else []
                found.append(pytest.param(cell, name, marks=marks, id=f"{cell.name}-{name}"))
    return found


@pytest.fixture(scope="session")
def results() -> Iterator[Results]:
    """Filled by the tests, and written at the end if the run is to."""
    found: Results = {}
    yield found
    write(found)


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway of the cell's own: no client meets what another one left."""
    cell: Cell = request.param
    with bench(tmp_path_factory.mktemp("cell"), drops=cell.row.drops) as ready, cell.client(ready) as client:
        yield Running(cell, client, ready)


@pytest.mark.parametrize(("running", "scenario"), runs(), indirect=["running"], scope="module")
def test_a_client_does_what_it_does_before_its_provider(running: Running, scenario: str, results: Results) -> None:
    row, provider = running.cell.row, running.cell.provider
    result = result_of(scenario, running.client, running.bench)
    known = row.expected(provider, scenario)
    recorded = known.result if known and result not in ("works", "none") else result
    results.setdefault(row.client, {}).setdefault(row.api, {}).setdefault(provider, {})[scenario] = recorded
    if known is None:
        assert result in ("works", "none"), result
    else:
        assert re.search(known.says, result), f"{known} is expected, and this came: {result}"

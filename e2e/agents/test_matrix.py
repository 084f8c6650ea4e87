"""Every client with every provider, with default settings and all rules: each result is `works` or an expected one."""

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
from e2e.agents.results import record
from e2e.agents.scenarios import SCENARIOS, Client, result_of


@dataclass(frozen=True)
class Cell:
    """A client with a provider."""

    row: Row
    provider: str

    @property
    def name(self) -> str:
        return f"{self.row.client}-{self.row.api}-{self.provider}"

    def client(self, ready: Bench) -> AbstractContextManager[Client]:
        """The client, configured for a gateway."""
        row, model = self.row, self.row.model(self.provider)
        if row.runs in TASKS:
            return nullcontext(Command(row.runs, row.api, model, ready))
        return driver(ready, row.runs, row.environment, row.api, model)


@dataclass(frozen=True)
class Running:
    """A cell with its running client and gateway."""

    cell: Cell
    client: Client
    bench: Bench


def cells(reached: bool) -> list[Any]:
    """The cells in which a turn works, or the others. `make test` runs the cells of the AI SDK, because it is small."""
    found = [Cell(row, provider) for row in ROWS for provider in ALL]
    return [
        pytest.param(cell, id=cell.name, marks=[pytest.mark.sample] if cell.row.client == "ai" else [])
        for cell in found
        if (cell.row.expected(cell.provider, "turn") is None) == reached
    ]


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway for this cell alone, so that no client sees another's state."""
    cell: Cell = request.param
    with bench(tmp_path_factory.mktemp("cell"), drops=cell.row.drops) as ready, cell.client(ready) as client:
        yield Running(cell, client, ready)


def check(running: Running, scenario: str) -> None:
    """Runs a scenario, records its result, and compares it with the expected one."""
    row, provider = running.cell.row, running.cell.provider
    result = result_of(scenario, running.client, running.bench)
    known = row.expected(provider, scenario)
    recorded = known.result if known and result not in ("works", "none") else result
    record(row.client, row.api, provider, scenario, recorded)
    if known is None:
        assert result in ("works", "none"), result
    else:
        assert re.search(known.says, result), f"{known} is expected, and this came: {result}"


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("running", cells(reached=True), indirect=True, scope="module")
def test_a_client_does_what_it_does_before_its_provider(running: Running, scenario: str) -> None:
    check(running, scenario)


@pytest.mark.parametrize("running", cells(reached=False), indirect=True, scope="module")
def test_what_is_not_reached_is_refused_by_name(running: Running) -> None:
    check(running, "turn")

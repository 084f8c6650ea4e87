"""Fixtures of the worker's end-to-end tests: real processes, real sockets, real disks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from openai import OpenAI

from e2e.local_gateway import COMMON_UPSTREAM, KEYS, LocalGateway, local_gateway


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGateway]:
    """One gateway for the tests of a module that do not change it."""
    with local_gateway(tmp_path_factory.mktemp("gateway")) as running:
        yield running


@pytest.fixture(autouse=True)
def author(monkeypatch: pytest.MonkeyPatch) -> None:
    """The author that the retention job's commands record."""
    monkeypatch.setenv("PROOFGATE_AUTHOR", "end-to-end tests")


@pytest.fixture
def client(gateway: LocalGateway) -> Iterator[OpenAI]:
    """The official client of the tenant acme, without automatic retries."""
    with OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"], max_retries=0) as openai:
        yield openai


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a test that starts a separate gateway."""
    return tmp_path


def pytest_unconfigure() -> None:
    """Ends the programs that the tests of this process shared."""
    COMMON_UPSTREAM.stop()

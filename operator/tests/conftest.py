"""Fixtures that several suites share."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.haproxy_bench import KEYS, Bench, Worker, bench

# How long an example takes is no claim, on a machine that has other things to do.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def haproxy_binary() -> str:
    """Return haproxy's path; its absence is a failure and not a skip.

    PROOFGATE_HAPROXY names another one than the machine's.
    """
    if os.environ.get("PROOFGATE_HAPROXY"):
        return os.environ["PROOFGATE_HAPROXY"]
    found = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.fail("no haproxy on PATH: ./setup/toolchain installs it")
    return found


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    """Three dummy workers."""
    made = [Worker(ordinal) for ordinal in range(3)]
    yield made
    for worker in made:
        worker.close()


@pytest.fixture
def haproxy(haproxy_binary: str, tmp_path: Path, workers: list[Worker]) -> Iterator[Bench]:
    """A HAProxy before them."""
    with bench(haproxy_binary, tmp_path, workers, KEYS) as running:
        running.set_ready(3)
        yield running

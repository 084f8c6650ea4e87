"""Fixtures that several suites share."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import ClientTimeout
from hypothesis import HealthCheck, settings

from proofgate_operator.workers import admin_port
from tests.haproxy_bench import Bench, Worker, dummy_workers, ready_bench

# Other processes may slow down the machine, so no example has a deadline.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(autouse=True, scope="session")
def patient_admin_port() -> Iterator[None]:
    """Wait longer than the product does for a worker's answer, because the test machine may be busy."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(admin_port, "_TIMEOUT", ClientTimeout(total=600))
        yield


@pytest.fixture(scope="session")
def haproxy_binary() -> str:
    """Return haproxy's path; fail, not skip, if it is missing.

    PROOFGATE_HAPROXY selects another binary than the one on PATH.
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
    with dummy_workers() as made:
        yield made


@pytest.fixture
def haproxy(haproxy_binary: str, tmp_path: Path) -> Iterator[Bench]:
    """A HAProxy in front of three ready workers."""
    with ready_bench(haproxy_binary, tmp_path) as running:
        yield running

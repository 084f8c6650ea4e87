"""Fixtures that several suites share."""

import os
import shutil

import pytest


@pytest.fixture(scope="session")
def haproxy_binary() -> str:
    """Return haproxy's path; where it must be there, its absence is a failure and not a skip.

    PROOFGATE_HAPROXY names another one than the machine's.
    """
    if os.environ.get("PROOFGATE_HAPROXY"):
        return os.environ["PROOFGATE_HAPROXY"]
    found = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found:
        return found
    if os.environ.get("PROOFGATE_REQUIRE_HAPROXY") == "1":
        pytest.fail("PROOFGATE_REQUIRE_HAPROXY=1, but there is no haproxy on PATH")
    pytest.skip("no haproxy on PATH")

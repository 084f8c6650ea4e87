"""The distribution of the tests over processes."""

from __future__ import annotations

import re
from typing import Any

import pytest


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Assigns all scenarios of a client with a provider to one process, because they share a gateway."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByCell(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return cell_of(nodeid)

    config.option.loadscopereorder = False
    return ByCell(config, log)


def cell_of(nodeid: str) -> str:
    """A test's name without the scenario, if it has one."""
    return re.sub(r"(test_a_client_does_what_it_does_before_its_provider\[.*)-[a-z]+\]$", r"\1]", nodeid)

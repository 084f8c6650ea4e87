"""One release for all tests, and one registry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.release import released
from e2e.release.released import Release


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signing key."""
    return released.new_key(tmp_path_factory.mktemp("key") / "release.key")


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a registry on loopback."""
    with released.registry(tmp_path_factory.mktemp("registry")) as address:
        yield address


@pytest.fixture(scope="session")
def made(registry: str, key: Path, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release of this checkout."""
    return released.release(tmp_path_factory.mktemp("release") / "dist", registry, key)


@pytest.fixture(scope="session")
def published(made: Release) -> Release:
    """The same release, pushed to the registry."""
    released.publish(made)
    return made

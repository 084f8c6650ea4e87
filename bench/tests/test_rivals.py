"""Rivals are installed on demand, and an unavailable one is reported."""

import sys
from pathlib import Path

import pytest

from bench.rivals import environment
from bench.system import UnavailableError
from bench.systems import CANDIDATES, NULL, PRODUCT, SPINNING


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROOFGATE_CACHE", str(tmp_path))
    return tmp_path / "bench"


def test_an_environment_is_made_once_for_each_version(cache: Path) -> None:
    made: list[Path] = []
    for version in ("1", "1", "2"):
        environment.ready("thing", version, made.append)
    assert made == [cache / "thing"] * 2


def test_what_a_failed_installation_left_is_not_taken_for_an_environment(cache: Path) -> None:
    def fail(folder: Path) -> None:
        raise UnavailableError("no")

    with pytest.raises(UnavailableError):
        environment.ready("thing", "1", fail)
    made: list[Path] = []
    environment.ready("thing", "1", made.append)
    assert len(made) == 1


def test_a_failure_is_told_by_its_last_lines_without_addresses(tmp_path: Path) -> None:
    script = "import sys; sys.exit('one\\ntwo\\nlooked at https://user:secret@registry.test/simple\\nno such version')"
    with pytest.raises(UnavailableError) as caught:
        environment.run([sys.executable, "-c", script], tmp_path)
    assert "no such version" in str(caught.value)
    assert "registry.test" not in str(caught.value)
    assert "one" not in str(caught.value)


def test_a_missing_client_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no-such-client is not installed"):
        environment.run(["no-such-client"], tmp_path)


def test_names_are_unique_and_the_ones_that_the_summary_needs_are_there() -> None:
    names = [candidate.name for candidate in CANDIDATES]
    assert len(set(names)) == len(names)
    assert {NULL, PRODUCT, SPINNING, "haproxy"} <= set(names)

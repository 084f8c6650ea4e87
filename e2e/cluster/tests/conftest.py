"""Make `e2e.cluster` importable from any folder in which pytest starts, and keep all tests away from the real cache."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROOFGATE_CACHE", str(tmp_path / "cache"))

"""The verifier for browsers is made of the same code as the worker, in the same versions."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def versions(lock: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for package in tomllib.loads(lock.read_text())["package"]:
        found.setdefault(package["name"], set()).add(package["version"])
    return found


def test_it_is_made_of_the_versions_that_the_worker_is_made_of() -> None:
    ours, workers = (versions(ROOT / "rust-core" / folder / "Cargo.lock") for folder in ("browser", "."))
    del ours["proofgate-browser"]
    for name, found in ours.items():
        assert found <= workers.get(name, set()), name

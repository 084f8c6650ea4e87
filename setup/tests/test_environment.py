"""Tests of the folders outside the checkout, and of the Python environment of each checkout."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOME = pwd.getpwuid(os.getuid()).pw_dir


def cache_folder(**environment: str) -> subprocess.CompletedProcess[str]:
    command = ROOT / "setup" / "cache-folder"
    return subprocess.run([command], env={"PATH": os.environ["PATH"], **environment}, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"PROOFGATE_CACHE": "/a b", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/a b"),
        ({"XDG_CACHE_HOME": "/x y", "HOME": "/h"}, "/x y/proofgate"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/proofgate"),
        ({"HOME": "/h"}, "/h/.cache/proofgate"),
        ({}, f"{HOME}/.cache/proofgate"),
    ],
)
def test_the_cache_is_where_the_environment_says(environment: dict[str, str], folder: str) -> None:
    assert cache_folder(**environment).stdout == f"{folder}\n"


def environment_of(name: str, root: Path = ROOT) -> Path:
    found = subprocess.run(
        [root / "setup" / "environment", "--path", name],
        env={**os.environ, "PROOFGATE_CACHE": "/cache"},
        check=True,
        capture_output=True,
        text=True,
    )
    return Path(found.stdout.rstrip("\n"))


def test_an_environment_is_named_by_the_digest_of_its_lock_files() -> None:
    locks = b"".join((ROOT / "requirements" / f"{name}.txt").read_bytes() for name in ("dev", "gateway", "operator"))
    assert environment_of("dev") == Path(f"/cache/venv-{hashlib.sha256(locks).hexdigest()[:16]}")


def test_a_gateways_environment_is_another_one_and_holds_nothing_for_tests() -> None:
    assert environment_of("gateway") != environment_of("dev")
    locked = "".join((ROOT / "requirements" / f"{name}.txt").read_text() for name in ("gateway", "build"))
    assert "\nmaturin==" in locked
    assert not any(f"\n{name}==" in locked for name in ("pytest", "mypy", "openai", "kubernetes", "ruff"))


def test_the_sites_environment_has_a_lock_of_its_own() -> None:
    lock = (ROOT / "requirements" / "docs.txt").read_bytes()
    assert environment_of("docs") == Path(f"/cache/venv-docs-{hashlib.sha256(lock).hexdigest()[:16]}")
    assert b"\nmkdocs-material==" in lock and b"\npydantic==" not in lock


def test_an_environment_that_is_ready_is_not_made_again(tmp_path: Path) -> None:
    root = tmp_path / "a checkout"
    (root / "setup").mkdir(parents=True)
    for name in ("environment", "cache-folder"):
        shutil.copy(ROOT / "setup" / name, root / "setup")
    shutil.copytree(ROOT / "requirements", root / "requirements")
    cache = {**os.environ, "PROOFGATE_CACHE": str(tmp_path / "a cache")}
    command = root / "setup" / "environment"
    path = subprocess.run(
        [command, "--path", "gateway"], env=cache, check=True, capture_output=True, text=True
    ).stdout.strip()
    (Path(path) / "bin").mkdir(parents=True)
    (Path(path) / "bin" / "python").symlink_to(sys.executable)
    (Path(path) / ".ready").touch()
    done = subprocess.run([command, "gateway"], env=cache, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_another_environment_is_refused() -> None:
    assert subprocess.run([ROOT / "setup" / "environment", "test"], capture_output=True).returncode == 2

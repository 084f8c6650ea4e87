"""`setup/check-version` on copies of the files that it reads."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
READ = {
    "rust-core/Cargo.toml": '[workspace]\nmembers = []\n\n[workspace.package]\nversion = "1.2.3"\n',
    "operator/pyproject.toml": '[project]\nname = "x"\ndependencies = ["proofgate-schema==1.2.3"]\n',
    "gateway/pyproject.toml": '[project]\ndependencies = [\n    "proofgate-schema==1.2.3",  # ours\n]\n',
    "gateway/src/proofgate/__init__.py": '__version__ = "1.2.3"\n',
    "schema/src/proofgate_schema/__init__.py": '__version__ = "1.2.3"\n',
    "operator/src/proofgate_operator/__init__.py": '__version__ = "1.2.3"\n',
    "charts/proofgate-operator/Chart.yaml": "name: x\nversion: 1.2.3\nappVersion: 1.2.3\n",
}
#: A crate of this repository, and a foreign crate that happens to have the same version.
LOCK = """[[package]]
name = "proofgate-wire"
version = "1.2.3"

[[package]]
name = "proofgate-fuzz"
version = "0.0.0"

[[package]]
name = "other"
version = "1.2.3"
source = "registry+https://github.com/rust-lang/crates.io-index"
"""
LOCKS = ("rust-core/Cargo.lock", "rust-core/fuzz/Cargo.lock", "e2e/garden/Cargo.lock")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "setup").mkdir()
    shutil.copy(ROOT / "setup" / "check-version", tmp_path / "setup")
    crate = {"rust-core/crates/wire/Cargo.toml": "[package]\nversion.workspace = true\n", "VERSION": "1.2.3\n"}
    for name, text in {**READ, **crate, **dict.fromkeys(LOCKS, LOCK)}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def check(checkout: Path, *tag: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([checkout / "setup" / "check-version", *tag], capture_output=True, text=True)


def test_one_version_everywhere_is_printed(checkout: Path) -> None:
    assert check(checkout).stdout == check(checkout, "v1.2.3").stdout == "1.2.3\n"


@pytest.mark.parametrize("tag", ["v1.2.4", "1.2.3", "v1.2", ""])
def test_another_tag_is_refused(checkout: Path, tag: str) -> None:
    refused = check(checkout, tag)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"the tag is '{tag}', and the version '1.2.3'" in refused.stderr


@pytest.mark.parametrize("name", READ)
def test_a_file_of_another_version_is_named(checkout: Path, name: str) -> None:
    path = checkout / name
    path.write_text(path.read_text().replace("1.2.3", "1.2.4"))
    refused = check(checkout)
    assert refused.returncode == 1 and name in refused.stderr and "1.2.4" in refused.stderr


@pytest.mark.parametrize("name", READ)
def test_a_file_without_a_version_is_named(checkout: Path, name: str) -> None:
    (checkout / name).write_text("nothing\n")
    refused = check(checkout)
    assert refused.returncode == 1 and name in refused.stderr


def test_a_lock_file_of_another_version_is_named(checkout: Path) -> None:
    (checkout / "rust-core/Cargo.lock").write_text(LOCK.replace("1.2.3", "1.2.4"))
    refused = check(checkout)
    assert refused.returncode == 1 and "rust-core/Cargo.lock says '1.2.4'" in refused.stderr


def test_a_version_that_is_none_is_refused(checkout: Path) -> None:
    (checkout / "VERSION").write_text("next\n")
    assert (check(checkout).returncode, check(checkout, "--write").returncode) == (1, 1)


def test_a_new_version_is_written_once_and_into_every_other_file_from_there(checkout: Path) -> None:
    (checkout / "VERSION").write_text("2.0.0-rc.1\n")
    assert check(checkout, "--write").stdout == check(checkout).stdout == "2.0.0-rc.1\n"
    for name, text in READ.items():
        assert (checkout / name).read_text() == text.replace("1.2.3", "2.0.0-rc.1")
    for name in LOCKS:
        assert (checkout / name).read_text() == LOCK.replace("1.2.3", "2.0.0-rc.1", 1)


def test_this_checkout_has_one_version() -> None:
    assert check(ROOT).returncode == 0

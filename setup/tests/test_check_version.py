"""`setup/check-version` on copies of what it reads."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
READ = {
    "rust-core/Cargo.toml": '[workspace]\nmembers = []\n\n[workspace.package]\nversion = "1.2.3"\n',
    "operator/pyproject.toml": '[project]\nname = "x"\nversion = "1.2.3"\ndependencies = ["proofgate-schema==1.2.3"]\n',
    "gateway/pyproject.toml": '[project]\ndependencies = [\n    "proofgate-schema==1.2.3",  # ours\n]\n',
    "schema/pyproject.toml": '[project]\nname = "x"\nversion = "1.2.3"\n',
    "schema/src/proofgate_schema/__init__.py": '__version__ = "1.2.3"\n',
    "operator/src/proofgate_operator/__init__.py": '__version__ = "1.2.3"\n',
    "charts/proofgate-operator/Chart.yaml": "version: 1.2.3\nappVersion: 1.2.3\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "setup").mkdir()
    shutil.copy(ROOT / "setup" / "check-version", tmp_path / "setup")
    for name, text in READ.items():
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


def test_this_checkout_has_one_version() -> None:
    assert check(ROOT).returncode == 0

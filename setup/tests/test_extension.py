"""`setup/extension` with a stand-in for maturin: one build for developers and for the images."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ("extension", "progress", "release-flags", "cache-folder", "bin")
#: Makes a wheel with the text of $CONTENT in the folder of --out, and records its arguments.
MATURIN = """\
import os, pathlib, sys, zipfile
with open(os.environ["ASKED"], "a") as asked:
    out = sys.argv.index("--out")
    print(*(sys.argv[1:out] + sys.argv[out + 2 :]), "|", os.environ.get("RUSTFLAGS"), file=asked)
with zipfile.ZipFile(pathlib.Path(sys.argv[out + 1], "proofgate-0.1.0-cp311-abi3-linux.whl"), "w") as wheel:
    wheel.writestr("proofgate/_core.abi3.so", os.environ["CONTENT"])
"""


@dataclass(frozen=True)
class Checkout:
    place: Path

    @property
    def installed(self) -> Path:
        return self.place / "gateway" / "src" / "proofgate" / "_core.abi3.so"

    def build(self, *arguments: str, content: str = "one", **environment: str) -> subprocess.CompletedProcess[str]:
        shared = self.place.parent
        programs = shared / "programs"
        programs.mkdir(exist_ok=True)
        (programs / "maturin").write_text(f"#!{sys.executable}\n{MATURIN}")
        (programs / "maturin").chmod(0o755)
        python = programs / "python"
        python.unlink(missing_ok=True)
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        every = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "CARGO_TARGET_DIR": str(shared / "target"),
            "PROOFGATE_CACHE": str(shared / "cache"),
            "ASKED": str(shared / "asked"),
            "CONTENT": content,
            **environment,
        }
        return subprocess.run(
            [self.place / "setup" / "extension", *arguments], env=every, capture_output=True, text=True, timeout=120
        )

    def asked(self) -> list[str]:
        return (self.place.parent / "asked").read_text().splitlines()


def checkout(place: Path) -> Checkout:
    (place / "gateway" / "src" / "proofgate").mkdir(parents=True)
    (place / "setup").mkdir()
    for name in SCRIPTS:
        source = ROOT / "setup" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, place / "setup" / name)
    return Checkout(place)


@pytest.fixture
def one(tmp_path: Path) -> Checkout:
    return checkout(tmp_path / "a checkout")


def test_the_extension_of_the_wheel_is_what_an_editable_package_runs(one: Checkout) -> None:
    assert one.build().returncode == 0
    assert one.installed.read_text() == "one"
    assert one.installed.stat().st_mode & 0o777 == 0o755


def test_an_extension_that_is_the_same_is_left_in_its_place_and_another_one_replaces_it_as_a_whole(
    one: Checkout,
) -> None:
    one.build()
    first = one.installed.stat()
    one.build()
    second = one.installed.stat()
    assert (second.st_ino, second.st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    with one.installed.open() as used:
        one.build(content="two")
        assert used.read() == "one"
    assert one.installed.read_text() == "two"


def test_images_hold_what_was_tested_and_it_is_compiled_once_for_all_checkouts(one: Checkout, tmp_path: Path) -> None:
    one.build()
    one.build(str(tmp_path / "wheels"))
    checkout(tmp_path / "another").build()
    assert len(one.asked()) == 3
    assert len(set(one.asked())) == 1
    assert [path.suffix for path in (tmp_path / "wheels").iterdir()] == [".whl"]


def test_a_wheel_for_another_kind_of_machine_stays_out_of_the_checkout(one: Checkout, tmp_path: Path) -> None:
    done = one.build(str(tmp_path / "wheels"), "aarch64-unknown-linux-gnu")
    assert done.returncode == 0, done.stderr
    assert not one.installed.exists()
    assert "--target aarch64-unknown-linux-gnu" in one.asked()[0]
    flags = one.asked()[0].partition("| ")[2]
    assert "profile-use" not in flags
    assert "=/cargo" in flags, "no path of this machine is in what is shipped"


def test_a_build_that_fails_is_told_and_leaves_what_was_there(one: Checkout) -> None:
    one.build()
    failed = one.build(ASKED="/no/such/folder")
    assert failed.returncode != 0
    assert "compiling failed after " in failed.stderr and "No such file or directory" in failed.stderr
    assert one.installed.read_text() == "one"

"""Build results of another checkout in the shared folder are reused if they were built from the same content."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ("of-this-checkout", "bin")
LONG_AGO = 1_000_000_000
#: A generous timeout; no test waits for time to pass.
SECONDS = 120
LIBRARY = 'pub fn text() -> &\'static str { "%s" }\n'
PROGRAM = 'fn main() { println!("{} {}", library::text(), %s); }\n'


@dataclass(frozen=True)
class Checkout:
    """A workspace of a library and a program that prints the library's text."""

    place: Path
    target: Path

    @classmethod
    def make(cls, place: Path, target: Path, text: str = "one", where: str = '""') -> Checkout:
        made = cls(place, target)
        (place / "setup").mkdir(parents=True)
        for name in SCRIPTS:
            source = ROOT / "setup" / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, place / "setup" / name)
        workspace = place / "rust-core"
        for name in ("library", "program"):
            (workspace / name / "src").mkdir(parents=True)
        (workspace / "Cargo.toml").write_text('[workspace]\nresolver = "3"\nmembers = ["library", "program"]\n')
        package = '[package]\nname = "{}"\nversion = "0.0.0"\nedition = "2024"\n'
        (workspace / "library" / "Cargo.toml").write_text(package.format("library"))
        (workspace / "program" / "Cargo.toml").write_text(
            package.format("program") + '[dependencies]\nlibrary = { path = "../library" }\n'
        )
        made.library.write_text(LIBRARY % text)
        (workspace / "program" / "src" / "main.rs").write_text(PROGRAM % where)
        return made

    @property
    def library(self) -> Path:
        return self.place / "rust-core" / "library" / "src" / "lib.rs"

    def guard(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.place / "setup" / "of-this-checkout", *command],
            env={**os.environ, "CARGO_TARGET_DIR": str(self.target), "CARGO_TERM_COLOR": "never"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, *command: str) -> str:
        """Runs a command; returns its stderr."""
        process = self.guard(*command)
        _, said = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, said
        return said

    def build(self) -> list[str]:
        """Builds the workspace; returns the compiled packages."""
        said = self.run("cargo", "build", "--manifest-path", str(self.place / "rust-core" / "Cargo.toml"))
        return re.findall(r"Compiling (\w+) ", said)

    def says(self) -> str:
        """The output of the built program."""
        program = self.target / "debug" / "program"
        return subprocess.run([program], check=True, capture_output=True, text=True, timeout=SECONDS).stdout.strip()


def age(checkout: Checkout) -> None:
    """Gives all files an old time, like files from an archive."""
    for path in checkout.place.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target"


def test_a_fresh_clone_of_the_same_content_compiles_nothing(tmp_path: Path, target: Path) -> None:
    assert Checkout.make(tmp_path / "one", target).build() == ["library", "program"]
    assert Checkout.make(tmp_path / "other", target).build() == []


def test_what_differs_in_another_checkout_is_compiled_whatever_its_age(tmp_path: Path, target: Path) -> None:
    one, other = Checkout.make(tmp_path / "one", target), Checkout.make(tmp_path / "other", target, text="two")
    age(other)
    assert one.build() == ["library", "program"]
    assert other.build() == ["library", "program"]
    assert other.says() == "two"
    assert one.build() == ["library", "program"]
    assert one.says() == "one"


def test_only_what_depends_on_a_changed_file_is_compiled_again(tmp_path: Path, target: Path) -> None:
    Checkout.make(tmp_path / "one", target).build()
    assert Checkout.make(tmp_path / "other", target, where="1").build() == ["program"]


def test_an_edit_is_compiled_and_a_file_that_was_only_touched_is_not(tmp_path: Path, target: Path) -> None:
    one = Checkout.make(tmp_path / "one", target)
    one.build()
    one.library.touch()
    assert one.build() == []
    one.library.write_text(LIBRARY % "two")
    assert one.build() == ["library", "program"]
    assert one.says() == "two"


def test_another_content_with_an_old_time_is_compiled(tmp_path: Path, target: Path) -> None:
    one = Checkout.make(tmp_path / "one", target)
    one.build()
    one.library.write_text(LIBRARY % "two")
    os.utime(one.library, (LONG_AGO, LONG_AGO))
    assert one.build() == ["library", "program"]
    assert one.says() == "two"


@pytest.mark.parametrize("keeps_time", [False, True])
def test_what_was_edited_for_the_time_of_a_build_is_not_taken_over(
    tmp_path: Path, target: Path, keeps_time: bool
) -> None:
    one, other = Checkout.make(tmp_path / "one", target), Checkout.make(tmp_path / "other", target)
    one.run("true")
    before = tmp_path / "before.rs"
    shutil.copy2(one.library, before)
    copy = "cp -p" if keeps_time else "cp"
    edited = one.place / "edited.rs"
    edited.write_text(LIBRARY % "two")
    cargo = f"cargo build --manifest-path '{one.place}/rust-core/Cargo.toml'"
    one.run("sh", "-ec", f"cp '{edited}' '{one.library}'; {cargo}; {copy} '{before}' '{one.library}'")
    assert one.says() == "two"
    assert other.build() == ["library", "program"]
    assert other.says() == "one"


def test_after_a_build_that_was_killed_nothing_is_taken_over(tmp_path: Path, target: Path) -> None:
    one, other = Checkout.make(tmp_path / "one", target), Checkout.make(tmp_path / "other", target)
    one.build()
    killed = one.guard("sh", "-c", "echo started; exec sleep 600 >&- 2>&-")
    assert killed.stdout is not None
    killed.stdout.readline()
    sleeping = subprocess.run(["ps", "-o", "pid=", "--ppid", str(killed.pid)], capture_output=True, text=True).stdout
    killed.kill()
    killed.communicate(timeout=SECONDS)
    os.kill(int(sleeping), signal.SIGKILL)
    assert other.build() == ["library", "program"]


def test_an_interrupted_build_is_remembered(tmp_path: Path, target: Path) -> None:
    one, other = Checkout.make(tmp_path / "one", target), Checkout.make(tmp_path / "other", target)
    one.build()
    interrupted = one.guard("sh", "-c", "echo started; exec sleep 600")
    assert interrupted.stdout is not None
    interrupted.stdout.readline()
    interrupted.terminate()
    interrupted.communicate(timeout=SECONDS)
    assert interrupted.returncode == 128 + signal.SIGTERM
    assert other.build() == []


def test_what_names_the_checkouts_path_is_compiled_for_each(tmp_path: Path, target: Path) -> None:
    path = 'env!("CARGO_MANIFEST_DIR")'
    one, other = (Checkout.make(tmp_path / name, target, where=path) for name in ("one", "other"))
    one.build()
    assert other.build() == ["program"]
    assert other.says() == f"one {other.place / 'rust-core' / 'program'}"


def test_another_checkout_waits_for_a_build(tmp_path: Path, target: Path) -> None:
    one, other = Checkout.make(tmp_path / "one", target), Checkout.make(tmp_path / "other", target, text="two")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    first = one.guard("sh", "-c", f"echo started; read line < '{fifo}'")
    assert first.stdout is not None
    first.stdout.readline()
    waiting = other.guard("cargo", "build", "--manifest-path", str(other.place / "rust-core" / "Cargo.toml"))
    assert waiting.stderr is not None
    assert waiting.stderr.readline().startswith(f"waiting until the build of {one.place} ")
    fifo.write_text("\n")
    first.communicate(timeout=SECONDS)
    waiting.communicate(timeout=SECONDS)
    assert other.says() == "two"


def test_a_build_that_a_build_starts_does_not_wait_for_it(tmp_path: Path, target: Path) -> None:
    one = Checkout.make(tmp_path / "one", target)
    manifest = str(one.place / "rust-core" / "Cargo.toml")
    said = one.run(str(one.place / "setup" / "of-this-checkout"), "cargo", "build", "--manifest-path", manifest)
    assert "Compiling program" in said


def test_builds_of_one_checkout_in_two_folders_take_turns(tmp_path: Path, target: Path) -> None:
    one = Checkout.make(tmp_path / "one", target)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    first = one.guard("sh", "-c", f"echo started; read line < '{fifo}'")
    assert first.stdout is not None
    first.stdout.readline()
    with pytest.raises(BlockingIOError):
        descriptor = os.open(one.place / "rust-core", os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fifo.write_text("\n")
    first.communicate(timeout=SECONDS)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)


def test_without_a_shared_folder_cargo_is_the_machines(tmp_path: Path, target: Path) -> None:
    one = Checkout.make(tmp_path / "one", target)
    environment = {name: text for name, text in os.environ.items() if name != "CARGO_TARGET_DIR"}
    shim, manifest = one.place / "setup" / "bin" / "cargo", one.place / "rust-core" / "Cargo.toml"
    subprocess.run([shim, "build", "--manifest-path", manifest], env=environment, check=True, capture_output=True)
    assert not target.exists()
    assert not (one.place / "rust-core" / "target" / "sources.json").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["build"],
        ["--locked", "--color", "never", "build"],
        ["+stable", "check"],
        ["test", "--package", "build", "--", "--manifest-path", "/"],
        ["--locked", "test", "--no-run", "--manifest-path", "rust-core/Cargo.toml"],
    ],
)
def test_a_build_by_cargo_in_the_shared_folder_is_guarded(tmp_path: Path, target: Path, arguments: list[str]) -> None:
    one = Checkout.make(tmp_path / "one", target)
    done = by_the_shim_of(one, arguments, one.place)
    assert done.splitlines() == [f"{tmp_path / 'machine'}:{os.environ['PATH']}", " ".join(arguments)]
    assert json.loads((target / "sources.json").read_text())["checkout"] == str(one.place)


def test_the_checkout_that_is_built_is_guarded_whoever_builds_it(tmp_path: Path, target: Path) -> None:
    one, other = Checkout.make(tmp_path / "one", target), Checkout.make(tmp_path / "other", target)
    by_the_shim_of(one, ["build"], other.place / "rust-core")
    assert json.loads((target / "sources.json").read_text())["checkout"] == str(other.place)
    by_the_shim_of(one, ["build", f"--manifest-path={one.place}/rust-core/Cargo.toml"], other.place)
    assert json.loads((target / "sources.json").read_text())["checkout"] == str(one.place)


def by_the_shim_of(checkout: Checkout, arguments: list[str], folder: Path) -> str:
    """The output of a stand-in for cargo that a checkout's shim started: its PATH and its arguments."""
    fake = checkout.place.parent / "machine" / "cargo"
    fake.parent.mkdir(exist_ok=True)
    fake.write_text('#!/bin/sh\necho "$PATH"\necho "$@"\n')
    fake.chmod(0o755)
    shims = checkout.place / "setup" / "bin"
    path = f"{shims}:{fake.parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "CARGO_TARGET_DIR": str(checkout.target)}
    command = [str(shims / "cargo"), *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True, timeout=SECONDS
    ).stdout


def test_a_command_that_builds_nothing_waits_for_nobody(tmp_path: Path, target: Path) -> None:
    one = Checkout.make(tmp_path / "one", target)
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    subprocess.run([one.place / "setup" / "bin" / "cargo", "--version"], env=environment, check=True)
    assert not target.exists()


def test_all_that_a_build_reads_is_in_the_folders_that_are_compared() -> None:
    text = (ROOT / "setup" / "of-this-checkout").read_text()
    (named,) = re.findall(r"^FOLDERS = \((.*)\)$", text, re.MULTILINE)
    folders = [ROOT / name for name in re.findall(r'"([^"]+)"', named)]
    tracked = subprocess.run(["git", "ls-files", "*.rs", "*Cargo.toml"], cwd=ROOT, capture_output=True, text=True)
    read = [ROOT / name for name in tracked.stdout.split()]
    assert read
    for path in list(read):
        content = path.read_text()
        if path.suffix == ".rs":
            included = re.findall(r'include(?:_str|_bytes)?!\(\s*"([^"]+)"', content)
        else:
            tables = [tomllib.loads(content)]
            included = []
            while tables:
                table = tables.pop()
                tables += [value for value in table.values() if isinstance(value, dict)]
                included += [value for key, value in table.items() if key == "path" and isinstance(value, str)]
        read += [Path(os.path.normpath(path.parent / name)) for name in included]
    outside = [path for path in read if not any(path.is_relative_to(folder) for folder in folders)]
    assert outside == []

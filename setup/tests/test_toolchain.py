"""The packages that `setup/toolchain` requests, by purpose and distribution, on machines made of stubs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: The programs that the script itself uses.
USED = ("bash", "cat", "chmod", "cut", "dirname", "rm", "sed", "sleep", "tr", "uname")
GATEWAY = ("cargo", "rustc", "cc", "python3")
CLUSTER = (*GATEWAY, "go")
TESTS = (*CLUSTER, "git", "haproxy", "nginx", "node", "npm", "chromium", "chromedriver")
BENCHMARKS = (*GATEWAY, "git", "haproxy", "nginx", "wrk")
NEEDED = {"gateway": GATEWAY, "cluster": CLUSTER, "tests": TESTS, "benchmarks": BENCHMARKS}
STUBS = {
    "rustc": 'case $1 in --version) echo "rustc 1.95.0 (59807616e 2026-04-14)";; --print) echo "$SYSROOT";; esac',
    "cargo": ":",
    "go": "echo go1.26.8",
    "python3": f'exec "{sys.executable}" "$@"',
    "apt-cache": "echo 'nothing:'; echo \"  Candidate: ${CANDIDATE:-(none)}\"",
}


@dataclass(frozen=True)
class Machine:
    """A machine with some programs, which logs the calls of its package manager and of rustup."""

    folder: Path

    def add(self, name: str, script: str = ":") -> None:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def add_manager(self, name: str, code: int = 0) -> None:
        self.add(name, f'echo "{name} $*" >> "{self.folder}/log"; exit {code}')

    def asked(self) -> list[str]:
        log = self.folder / "log"
        return log.read_text().splitlines() if log.exists() else []

    def toolchain(self, *purposes: str, user: int = 1000, **environment: str) -> subprocess.CompletedProcess[str]:
        self.add("id", f"echo {user}")
        # Otherwise the script would find servers of this machine in /usr/sbin.
        script = self.folder / "setup" / "toolchain"
        return subprocess.run(
            [script, *purposes],
            env={"PATH": str(self.folder / "bin"), "SYSROOT": str(self.folder / "sysroot"), **environment},
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for name in ("setup", "rust-core", "bin", "sysroot"):
        (tmp_path / name).mkdir()
    text = (ROOT / "setup" / "toolchain").read_text()
    assert "PATH=$PATH:/usr/local/sbin:/usr/sbin " in text
    script = tmp_path / "setup" / "toolchain"
    script.write_text(text.replace("PATH=$PATH:/usr/local/sbin:/usr/sbin ", ""))
    script.chmod(0o755)
    shutil.copy(ROOT / "setup" / "progress", tmp_path / "setup")
    (tmp_path / "rust-core" / "Cargo.toml").write_text('rust-version = "1.90"\n')
    for name in USED:
        found = shutil.which(name)
        assert found is not None, name
        (tmp_path / "bin" / name).symlink_to(found)
    (tmp_path / "bin" / "env").symlink_to("/usr/bin/env")
    return Machine(tmp_path)


def equip(machine: Machine, programs: tuple[str, ...], wasm: bool = True) -> None:
    for name in programs:
        machine.add(name, STUBS.get(name, ":"))
    if wasm:
        (machine.folder / "sysroot" / "lib" / "rustlib" / "wasm32-unknown-unknown").mkdir(parents=True)


@pytest.mark.parametrize("purpose", NEEDED)
def test_what_a_purpose_needs_is_enough_and_nothing_is_said(machine: Machine, purpose: str) -> None:
    equip(machine, NEEDED[purpose], wasm=purpose in ("cluster", "tests"))
    done = machine.toolchain(purpose)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("purpose", NEEDED)
def test_all_that_is_missing_is_named_at_once(machine: Machine, purpose: str) -> None:
    machine.add_manager("dnf")
    done = machine.toolchain(purpose)
    assert done.returncode == 1
    named = {line.strip().split(":")[0] for line in done.stderr.splitlines() if line.startswith("  ")}
    expected = set(NEEDED[purpose]) - {"rustc"}
    assert expected <= named
    assert machine.asked() == []


def test_a_gateway_needs_no_compiler_of_go_no_browser_and_no_component_of_rust(machine: Machine) -> None:
    equip(machine, GATEWAY, wasm=False)
    machine.add_manager("rustup")
    assert machine.toolchain("gateway").returncode == 0
    assert machine.asked() == []


def test_tests_are_the_purpose_if_none_is_named(machine: Machine) -> None:
    equip(machine, CLUSTER)
    assert "missing, for tests:\n  git: " in machine.toolchain().stderr


def test_another_purpose_is_refused(machine: Machine) -> None:
    done = machine.toolchain("gateways")
    assert done.returncode == 2
    assert "no purpose is called gateways" in done.stderr


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt-get", "sudo apt-get install --no-install-recommends build-essential nginx-light chromium-driver"),
        ("dnf", "sudo dnf install gcc nginx chromedriver"),
        ("zypper", "sudo zypper install gcc nginx chromedriver"),
        ("pacman", "sudo pacman -S --needed gcc nginx chromium"),
        ("apk", "sudo apk add build-base nginx chromium-chromedriver"),
        ("brew", "brew install gcc nginx chromedriver"),
    ],
)
def test_the_command_is_that_of_the_distribution(machine: Machine, manager: str, command: str) -> None:
    absent = ("cc", "nginx", "chromedriver")
    equip(machine, tuple(name for name in TESTS if name not in absent))
    machine.add_manager(manager)
    done = machine.toolchain("tests")
    assert done.returncode == 1
    assert f"to install it:\n  {command}\n" in done.stderr
    assert machine.asked() == []


def test_on_another_system_the_programs_are_named(machine: Machine) -> None:
    equip(machine, ("cargo", "rustc", "python3"))
    assert "with your distribution's package manager: gcc" in machine.toolchain("gateway").stderr


def test_root_on_debian_gets_it_installed(machine: Machine) -> None:
    equip(machine, ("cargo", "rustc", "python3"))
    machine.add_manager("apt-get")
    done = machine.toolchain("gateway", user=0)
    assert done.returncode == 0, done.stderr
    assert machine.asked() == [
        "apt-get update -qq",
        "apt-get install -y -qq --no-install-recommends build-essential",
    ]
    assert "== installing build-essential" in done.stdout


def test_an_installation_that_fails_says_what_the_package_manager_said(machine: Machine) -> None:
    equip(machine, ("cargo", "rustc", "python3"))
    machine.add("apt-get", "echo 'no route to the archive'; exit 100")
    done = machine.toolchain("gateway", user=0)
    assert done.returncode == 100
    assert "no route to the archive" in done.stderr


def test_root_elsewhere_is_told_the_command_and_nothing_is_installed(machine: Machine) -> None:
    equip(machine, ("cargo", "rustc", "python3"))
    machine.add_manager("pacman")
    done = machine.toolchain("gateway", user=0)
    assert done.returncode == 1
    assert "  pacman -S --needed gcc\n" in done.stderr
    assert machine.asked() == []


def test_an_old_rust_is_named_with_its_version_and_how_rustup_brings_another(machine: Machine) -> None:
    equip(machine, GATEWAY)
    machine.add("rustc", 'echo "rustc 1.85.0 (4d91de4e4 2025-02-17)"')
    machine.add_manager("rustup")
    done = machine.toolchain("gateway", user=0)
    assert done.returncode == 1
    assert "cargo: Rust 1.90 or later; rustc here is 1.85.0" in done.stderr
    assert "rustup update stable" in done.stderr
    assert machine.asked() == []


@pytest.mark.parametrize(
    ("candidate", "told"),
    [
        ("1.91.1+dfsg1-1", "  sudo apt-get install --no-install-recommends cargo\n"),
        ("", "Rust comes from https://rustup.rs"),
    ],
)
def test_debians_rust_is_proposed_only_if_it_is_new_enough(machine: Machine, candidate: str, told: str) -> None:
    equip(machine, ("cc", "python3", "apt-cache"))
    machine.add_manager("apt-get")
    done = machine.toolchain("gateway", CANDIDATE=candidate)
    assert told in done.stderr
    assert ("apt-get install" in done.stderr) == bool(candidate)


def test_a_distributions_rust_without_rustup_is_enough_for_a_gateway(machine: Machine) -> None:
    equip(machine, GATEWAY, wasm=False)
    machine.add("rustc", 'echo "rustc 1.92.0 (ded5c06cf 2025-12-08) (built from a source tarball)"')
    assert machine.toolchain("gateway").returncode == 0


def test_what_belongs_to_the_compiler_comes_by_rustup_where_it_is(machine: Machine) -> None:
    equip(machine, TESTS, wasm=False)
    machine.add("cargo", '[ "$1" != clippy ]')
    machine.add_manager("rustup")
    assert machine.toolchain("tests").returncode == 0
    assert machine.asked() == ["rustup target add wasm32-unknown-unknown", "rustup component add clippy"]


def test_what_belongs_to_the_compiler_comes_in_packages_elsewhere(machine: Machine) -> None:
    equip(machine, TESTS, wasm=False)
    machine.add("cargo", '[ "$1" != clippy ]')
    machine.add_manager("dnf")
    assert "dnf install rust-std-static-wasm32-unknown-unknown clippy\n" in machine.toolchain("tests").stderr


def test_a_component_that_rustup_cannot_bring_is_missing(machine: Machine) -> None:
    equip(machine, CLUSTER, wasm=False)
    machine.add_manager("rustup", code=1)
    done = machine.toolchain("cluster")
    assert done.returncode == 1
    assert "rustup target add wasm32-unknown-unknown failed" in done.stderr


def test_a_python_without_venv_is_told(machine: Machine) -> None:
    equip(machine, GATEWAY)
    machine.add("python3", f'case "$2" in *ensurepip*) exit 1;; esac; exec "{sys.executable}" "$@"')
    machine.add_manager("apt-get")
    assert "apt-get install --no-install-recommends python3-venv\n" in machine.toolchain("gateway").stderr

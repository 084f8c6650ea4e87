"""A stranger installs the wheels in a bare environment, and ends with a receipt that is verified."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.ports import free_ports
from e2e.programs import Program
from e2e.release.released import PATIENCE, WHEELS, Release

#: Nobody, whom no file of the checkout belongs to.
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
#: Interpreters that environments are made from. Root's own is in a folder that nobody else may enter.
PYTHONS = (str(getattr(sys, "_base_executable", sys.executable)), "/usr/bin/python3")
_USABLE = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"


class Stranger:
    """Somebody else on this machine, at home in a folder, with nothing of the checkout in the environment."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.prefix: tuple[str, ...] = AS_NOBODY if os.geteuid() == 0 else ()
        if self.prefix:
            os.chown(home, NOBODY, NOBODY)
        self.environment = {"HOME": str(home), "LANG": "C.UTF-8", "PATH": f"{home}/venv/bin:/usr/bin:/bin"}

    def python(self) -> str:
        """An interpreter that this one may run. Raises AssertionError if there is none."""
        for python in PYTHONS:
            # By way of a shell: `setpriv` itself may still be able to start what this one is not.
            asked = [*self.prefix, "/bin/sh", "-c", 'exec "$0" -c "$1"', python, _USABLE]
            if not subprocess.run(asked, capture_output=True, cwd=self.home, env=self.environment).returncode:
                return python
        raise AssertionError(f"none of {', '.join(PYTHONS)} is a Python 3.11 with venv that {self.prefix} may run")

    def run(self, *command: str) -> str:
        """Runs a command, and returns what it printed. Raises AssertionError if it fails."""
        done = subprocess.run(
            [*self.prefix, *command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE,
            cwd=self.home, env=self.environment,
        )  # fmt: skip
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self, name: str, *command: str) -> Program:
        """Starts a program in the background."""
        return Program.start(
            name, self.home, command[1:], (*self.prefix, command[0]), cwd=self.home, env=self.environment
        )


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    # Not in a folder of pytest's, which only its owner may enter.
    with tempfile.TemporaryDirectory(prefix="proofgate-stranger-") as home:
        Path(home).chmod(0o755)
        yield Stranger(Path(home))


def downloaded(made: Release, home: Path) -> Path:
    """The wheels as they are downloaded, with what they depend on, as an index would have it."""
    folder = home / "wheels"
    folder.mkdir()
    for wheel in made.folder.glob("*.whl"):
        shutil.copy(wheel, folder)
    for wheel in (WHEELS / "worker" / "wheels").glob("*.whl"):
        if not wheel.name.startswith("proofgate"):
            shutil.copy(wheel, folder)
    folder.chmod(0o755)
    return folder


def test_the_worker_is_installed_by_pip_and_its_first_answer_is_verified(made: Release, stranger: Stranger) -> None:
    wheels = downloaded(made, stranger.home)
    stranger.run(stranger.python(), "-m", "venv", "venv")
    stranger.run(
        "venv/bin/python", "-m", "pip", "install", "--quiet", "--no-index", "--find-links", str(wheels), "proofgate"
    )
    assert made.version in stranger.run("proofgate", "--version")

    upstream = stranger.start("upstream", "venv/bin/proofgate", "mock-upstream", "--listen", "127.0.0.1:0")
    worker: Program | None = None
    try:
        url = upstream.wait_for_line(r"mock-upstream ready: (\S+)")[1]
        listen, admin = (f"127.0.0.1:{port}" for port in free_ports(2))
        told = stranger.run(
            "proofgate", "quickstart", "--base-url", url, "--listen", listen, "--admin-listen", admin
        )  # fmt: skip
        serve, ask, receipt, verify, *_ = [
            line.strip() for line in re.sub(r"\\\n\s+", "", told).splitlines() if line.startswith("  ")
        ]
        worker = stranger.start("worker", f"venv/bin/{serve.split()[0]}", *shlex.split(serve)[1:])
        worker.wait_for_line("proofgate ready")
        answer = stranger.run("bash", "-euo", "pipefail", "-c", ask)
        assert answer.startswith("HTTP/1.1 200 OK"), answer
        (request,) = re.findall(r"^x-request-id: (\S+)", answer, re.MULTILINE | re.IGNORECASE)
        stranger.run("bash", "-euo", "pipefail", "-c", receipt.replace("ID", request))
        assert stranger.run("bash", "-euo", "pipefail", "-c", verify).endswith("verified\n")
        assert worker.stop() == 0
    finally:
        for program in (worker, upstream):
            if program is not None:
                program.stop(signal.SIGKILL)


def test_one_wheel_is_for_every_python_from_3_11_and_every_linux_since_debian_12(made: Release) -> None:
    (wheel,) = made.folder.glob("proofgate-*.whl")
    tags = re.fullmatch(r"proofgate-[^-]+-cp311-abi3-manylinux_2_(\d+)_\w+\.whl", wheel.name)
    # The libc of Debian 12, on which the images are, is 2.36.
    assert tags and int(tags[1]) <= 36, wheel.name
    assert {path.name.split("-")[0] for path in made.folder.glob("*.whl")} == {
        "proofgate", "proofgate_operator", "proofgate_schema"
    }  # fmt: skip


def test_no_wheel_names_the_machine_that_built_it(made: Release) -> None:
    for wheel in made.folder.glob("*.whl"):
        shutil.rmtree(made.folder.parent / "inside", ignore_errors=True)
        shutil.unpack_archive(wheel, made.folder.parent / "inside", "zip")
        here = str(Path(__file__).resolve().parents[2]).encode()
        for path in (made.folder.parent / "inside").rglob("*"):
            if path.is_file():
                assert here not in path.read_bytes(), path

"""An outsider installs the wheels in an empty environment, and verifies a receipt at the end."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e import tutorial
from e2e.ports import free_ports
from e2e.programs import Program
from e2e.release.released import PATIENCE, WHEELS, Release
from e2e.tutorial import Step, changed, exchange_of
from e2e.walks import walk

WITHOUT_KUBERNETES = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "run-without-kubernetes.md"
#: The user `nobody`, who owns no file of the checkout.
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
#: Interpreters for new environments. Root's own is in a folder that other users cannot enter.
PYTHONS = (str(getattr(sys, "_base_executable", sys.executable)), "/usr/bin/python3")
_USABLE = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"


class Stranger:
    """Another user of this machine, with a home folder, and with nothing of the checkout in the environment."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.prefix: tuple[str, ...] = AS_NOBODY if os.geteuid() == 0 else ()
        if self.prefix:
            os.chown(home, NOBODY, NOBODY)
        self.environment = {"HOME": str(home), "LANG": "C.UTF-8", "PATH": f"{home}/venv/bin:/usr/bin:/bin"}

    def python(self) -> str:
        """An interpreter that this user may run. Raises AssertionError if there is none."""
        for python in PYTHONS:
            # A shell starts it, because `setpriv` itself may still be able to start programs that this user cannot.
            asked = [*self.prefix, "/bin/sh", "-c", 'exec "$0" -c "$1"', python, _USABLE]
            if not subprocess.run(asked, capture_output=True, cwd=self.home, env=self.environment).returncode:
                return python
        raise AssertionError(f"none of {', '.join(PYTHONS)} is a Python 3.11 with venv that {self.prefix} may run")

    def run(self, *command: str) -> str:
        """Runs a command, and returns its output. Raises AssertionError if it fails."""
        done = subprocess.run(
            [*self.prefix, *command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE,
            cwd=self.home, env=self.environment,
        )  # fmt: skip
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def follow(self, steps: list[Step], codes: Mapping[int, Collection[int]] | None = None) -> str:
        """Runs the commands of a page in one shell, and returns their output. Raises AssertionError."""
        return tutorial.follow(steps, self.home, self.environment, PATIENCE, codes, self.prefix)

    def keep_running(self, name: str, step: Step, ready: str, started: ExitStack) -> Program:
        """Runs a command of a page in a separate terminal, until the stack ends."""
        program, *arguments = shlex.split(step.command)
        command = (*self.prefix, f"venv/bin/{program}")
        running = Program.start(name, self.home, arguments, command, cwd=self.home, env=self.environment)
        started.callback(running.stop, signal.SIGKILL)
        running.wait_for_line(ready)
        return running


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    # Only the owner may enter pytest's folders.
    with tempfile.TemporaryDirectory(prefix="proofgate-stranger-") as home:
        Path(home).chmod(0o755)
        yield Stranger(Path(home))


def downloaded(made: Release, home: Path) -> Path:
    """The downloaded wheels and their dependencies, as in a package index."""
    folder = home / "wheels"
    folder.mkdir()
    for wheel in made.folder.glob("*.whl"):
        shutil.copy(wheel, folder)
    for wheel in (WHEELS / "worker" / "wheels").glob("*.whl"):
        if not wheel.name.startswith("proofgate"):
            shutil.copy(wheel, folder)
    folder.chmod(0o755)
    return folder


def test_the_pages_for_a_laptop_lead_from_a_wheel_to_a_proof(
    made: Release, stranger: Stranger, record_property: Callable[[str, object], None]
) -> None:
    page, proof = WITHOUT_KUBERNETES.read_text(), tutorial.FIRST_PROOF.read_text()
    wheels = downloaded(made, stranger.home)
    for wheel in made.folder.glob("proofgate*.whl"):
        shutil.copy(wheel, stranger.home)
    # A package index has the wheels and their dependencies; here a folder replaces it.
    stranger.environment |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    upstream_port, port, admin_port = free_ports(3)
    changes = {"127.0.0.1:8100": f"127.0.0.1:{upstream_port}", "127.0.0.1:8080": f"127.0.0.1:{port}"}
    changes |= {"127.0.0.1:9090": f"127.0.0.1:{admin_port}", ".state/run": "proofgate"}

    with ExitStack() as started, walk(record_property):
        make, *install = tutorial.steps("Install from a wheel", page)
        make.command = make.command.replace("python3", stranger.python())
        assert made.version in stranger.follow([make, *install])
        upstream, quickstart, serve = changed(tutorial.steps("Try it without an API key", page), changes)
        stranger.keep_running("upstream", upstream, "mock-upstream ready", started)
        # Another process may use the page's ports.
        quickstart.command += f" --listen 127.0.0.1:{port} --admin-listen 127.0.0.1:{admin_port}"
        stranger.follow([quickstart])
        worker = stranger.keep_running("worker", serve, "proofgate ready", started)

        answered = stranger.follow(changed(tutorial.steps("2. Send a request", proof), changes))
        changes |= {"$ID": exchange_of(answered)}
        environment, *receipt = changed(tutorial.steps("3. Get a receipt and verify it", proof), changes)
        assert environment.command.startswith("export PATH="), "the environment of the wheel is active"
        assert stranger.follow(receipt).endswith("verified\n")
        tampered = changed(tutorial.steps("4. Change one byte", proof), changes)
        stranger.follow(tampered, {len(tampered) - 1: {40}})
        fsck = changed(tutorial.steps("5. Check the whole ledger", proof), changes)
        stranger.follow(fsck, {0: {0, 10}})
        assert worker.stop() == 0
        stranger.follow(fsck)


def test_one_wheel_is_for_every_python_from_3_11_and_every_linux_since_debian_12(made: Release) -> None:
    (wheel,) = made.folder.glob("proofgate-*.whl")
    tags = re.fullmatch(r"proofgate-[^-]+-cp311-abi3-manylinux_2_(\d+)_\w+\.whl", wheel.name)
    # The images are based on Debian 12, whose libc is 2.36.
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

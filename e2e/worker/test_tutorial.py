"""A reader of the laptop tutorials gets the shown output: each command runs exactly as on the page.

Only values that differ for any reader are replaced: ports, the id of an exchange, and the installation folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from e2e import tutorial
from e2e.everything import everything
from e2e.programs import PATIENCE, Program
from e2e.tutorial import Step, changed, exchange_of

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = Path(sys.executable).parent
RUN = Path(".state") / "run"
#: The Makefile's arguments for `proofgate quickstart --start` in `run`, except the folder.
MAKE_RUN = ("--demo", "--traffic")


@contextmanager
def make_run(folder: Path) -> Iterator[tuple[Program, dict[str, str]]]:
    """The program that `make run` starts, and the replacements in the page."""
    # The pages' commands expect the environment and the examples in their working folder.
    (folder / "setup").mkdir()
    environment = folder / "setup" / "environment"
    environment.write_text(f"#!/bin/sh\necho {INSTALLED.parent}\n")
    environment.chmod(0o755)
    (folder / "examples").symlink_to(ROOT / "examples")
    with everything(folder / RUN, *MAKE_RUN, logs=folder) as run:
        ports = {"127.0.0.1:8080": "gateway", "127.0.0.1:9090": "admin", "127.0.0.1:9091": "explorer"}
        changes = {usual: str(run.running[name]) for usual, name in ports.items()}
        [_, step] = changed(tutorial.steps("1. Start a gateway", tutorial.FIRST_PROOF.read_text()), changes)
        assert tutorial.missing(step.shown, run.told) == [], run.told
        yield run.program, changes


def follow(steps: list[Step], folder: Path, codes: Mapping[int, Collection[int]] | None = None) -> str:
    return tutorial.follow(steps, folder, dict(os.environ), 4 * PATIENCE, codes)


def test_the_first_proof_can_be_followed_command_by_command(folder: Path) -> None:
    page = tutorial.FIRST_PROOF.read_text()
    begin = tutorial.script("1. Start a gateway", page)
    assert begin.splitlines()[1:] == ["make run"], "the test starts the gateway itself"
    with make_run(folder) as (command, changes):
        printed = follow(changed(tutorial.steps("2. Send a request", page), changes), folder)
        changes |= {"$ID": exchange_of(printed)}
        rest = [
            step
            for heading in ("3. Get a receipt and verify it", "4. Change one byte", "5. Check the whole ledger")
            for step in changed(tutorial.steps(heading, page), changes)
        ]
        [refused] = [place for place, step in enumerate(rest) if any("not verified" in line for line in step.shown)]
        [fsck] = [place for place, step in enumerate(rest) if " fsck " in step.command]
        assert "The exit code is 40." in page and "it exits with 10" in page
        follow(rest, folder, {refused: {40}, fsck: {0, 10}})
        explorer = changed(tutorial.steps("6. Look at it in the explorer", page), changes)
        follow([rest[0], *explorer], folder)
        assert command.stop(signal.SIGINT) == 0
    follow([rest[fsck]], folder)
    # The last part of the other tutorial uses this tutorial's ledger and receipt.
    other = tutorial.CUT_THE_TAIL.read_text()
    follow([rest[0], *tutorial.steps("With your own gateway", other)], folder)


def test_the_readme_ends_in_verified_on_a_laptop(folder: Path) -> None:
    page = (ROOT / "README.md").read_text()
    steps = tutorial.steps("Try it on a laptop", page)
    assert steps[0].command.startswith("make run "), "the test starts the gateway itself"
    with make_run(folder) as (_, changes):
        ask = tutorial.steps("2. Send a request", tutorial.FIRST_PROOF.read_text())[0]
        printed = follow(changed([ask], changes), folder)
        changes |= {"receipt ID ": f"receipt {exchange_of(printed)} "}
        assert follow(changed(steps[1:], changes), folder).endswith("verified\n")


def test_make_run_is_the_command_that_the_tests_start() -> None:
    recipe = (ROOT / "Makefile").read_text().split("\nrun: ")[1].split("\n\n")[0]
    assert f"quickstart --start {' '.join(MAKE_RUN)} --directory" in recipe and str(RUN) in recipe


def test_who_notices_a_cut_tail_is_what_the_page_shows(folder: Path) -> None:
    (folder / "examples").symlink_to(ROOT / "examples")
    path, attack = tutorial.steps("Run it", tutorial.CUT_THE_TAIL.read_text())
    assert path.command.startswith("export PATH=")
    environment = {**os.environ, "PATH": f"{INSTALLED}:{os.environ['PATH']}"}
    [(code, printed)] = tutorial.run([attack], folder, environment, 4 * PATIENCE)
    assert shutil.which("python", path=environment["PATH"]) == str(INSTALLED / "python")
    assert code == 0 and printed.splitlines() == attack.shown, printed

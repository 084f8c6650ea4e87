"""The results of Rust test binaries are recorded, and a single test can be run by its name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from suites import rust
from suites.rust import Binary


def binary(folder: Path, script: str) -> Binary:
    """A stand-in for a test binary."""
    file = folder / "binary"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return Binary("wire/framing", file, folder)


def says(*events: Mapping[str, object]) -> str:
    return "\n".join(f"echo '{json.dumps(event)}'" for event in events)


PASSED = {"type": "test", "event": "ok", "name": "one::passes", "exec_time": 0.25}
FAILED = {"type": "test", "event": "failed", "name": "one::fails", "exec_time": 0.5, "stdout": "left 1, right 2"}
SLOW = {"type": "test", "event": "timeout", "name": "one::passes"}
ENDED = {"type": "suite", "event": "failed"}


def test_each_test_is_recorded_with_its_time_and_its_words(tmp_path: Path) -> None:
    passed, failed = rust.results_of(binary(tmp_path, says(SLOW, PASSED, FAILED, ENDED) + "\nexit 101"), [])
    assert (passed.name, passed.outcome, passed.call) == ("wire/framing::one::passes", "passed", 0.25)
    assert (failed.name, failed.outcome, failed.message) == ("wire/framing::one::fails", "failed", "left 1, right 2")


def test_a_binary_that_dies_in_the_middle_has_failed_with_what_it_said(tmp_path: Path) -> None:
    passed, died = rust.results_of(binary(tmp_path, says(PASSED) + "\necho out of memory >&2\nkill -9 $$"), [])
    assert passed.outcome == "passed"
    assert (died.name, died.outcome) == ("wire/framing", "failed")
    assert "ended with -9" in died.message
    assert "out of memory" in died.message


def test_a_test_runs_alone_by_its_name(tmp_path: Path) -> None:
    echo = binary(tmp_path, f'echo "$@" > {tmp_path}/arguments\n{says(PASSED, ENDED)}')
    assert [test.outcome for test in rust.alone(echo, ["wire/framing::one::passes", "other::one"])] == ["passed"]
    assert "--exact one::passes" in (tmp_path / "arguments").read_text()


def test_what_a_test_prints_is_not_taken_for_an_event(tmp_path: Path) -> None:
    assert len(list(rust.results_of(binary(tmp_path, f"echo 7; echo '[1]'; echo hm\n{says(PASSED, ENDED)}"), []))) == 1


@pytest.mark.parametrize(
    ("kind", "target", "name"), [("lib", "proofgate_wire", "wire"), ("test", "framing", "wire/framing")]
)
def test_a_binary_is_named_by_its_crate_and_file(kind: str, target: str, name: str) -> None:
    artifact: dict[str, object] = {
        "manifest_path": "/crates/wire/Cargo.toml",
        "target": {"kind": [kind], "name": target},
        "executable": "/target/x",
    }
    assert rust.binary_of(artifact).name == name


def test_a_share_is_the_same_for_the_same_seed_and_nothing_is_left_out_without_one() -> None:
    binaries = [Binary(f"crate{number}", Path(f"/{number}"), Path("/")) for number in range(10)]
    picked = [one.name for one in rust.chosen(binaries, "monday", 0.3)]
    assert len(set(picked)) == 3
    assert picked == [one.name for one in rust.chosen(list(reversed(binaries)), "monday", 0.3)]
    assert len(rust.chosen(binaries, "monday", 0.01)) == 1
    assert rust.chosen(binaries, None, 0.3) == binaries

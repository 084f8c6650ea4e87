"""The plugin records each test, and shuffles by a seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from suites import record
from suites.steps import ROOT

THREE = "".join(f"def test_{name}(): pass\n" for name in "abc")


def pytest_in(folder: Path, *options: str) -> list[record.Test]:
    """Runs pytest in a folder and returns the recorded tests, in the order of the record."""
    file = folder / "record.jsonl"
    file.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "suites.recorder",
        f"--record={file}",
        "-p",
        "no:cacheprovider",
    ]
    subprocess.run([*command, *options], cwd=folder, env={"PYTHONPATH": str(ROOT)}, check=False, capture_output=True)
    return record.read(file)


def names(tests: list[record.Test]) -> list[str]:
    return [test.name for test in tests]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files of three tests each."""
    for name in ("one", "two"):
        (tmp_path / f"test_{name}.py").write_text(THREE)
    return tmp_path


def test_a_test_whose_fixture_fails_has_failed_with_its_words(tmp_path: Path) -> None:
    text = "import pytest\n@pytest.fixture\ndef broken(): raise OSError('no room')\ndef test_it(broken): pass\n"
    (tmp_path / "test_one.py").write_text(text)
    (found,) = pytest_in(tmp_path)
    assert (found.name, found.outcome) == ("test_one.py::test_it", "failed")
    assert "no room" in found.message


def test_a_test_whose_fixture_cannot_be_left_has_failed(tmp_path: Path) -> None:
    text = (
        "import pytest\n@pytest.fixture\ndef stuck():\n    yield\n    raise OSError('busy')\ndef test_it(stuck): pass\n"
    )
    (tmp_path / "test_one.py").write_text(text)
    assert [test.outcome for test in pytest_in(tmp_path)] == ["failed"]


def test_one_process_records_what_several_run(folder: Path) -> None:
    assert len(pytest_in(folder, "-n", "2")) == 6


def test_a_test_that_ends_its_process_has_failed(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("import os\ndef test_dies(): os._exit(1)\n")
    assert [test.outcome for test in pytest_in(tmp_path, "-n", "2")] == ["failed"]


def test_an_order_comes_again_with_its_seed_and_keeps_files_together(folder: Path) -> None:
    orders = [names(pytest_in(folder, f"--shuffle={seed}")) for seed in ("1", "1", "2", "3", "4")]
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders}) > 1
    for order in orders:
        assert len({name.split("::")[0] for name in order[:3]}) == 1


def test_a_share_of_the_files_runs_whole(folder: Path) -> None:
    assert len(pytest_in(folder, "--shuffle=1", "--share=0.5")) == 3


def test_a_report_for_other_systems_says_what_failed(tmp_path: Path) -> None:
    tests = [record.Test("a", "passed", call=1.5), record.Test("b", "failed", message="it \x00 broke")]
    record.write_junit(tmp_path / "junit.xml", "one", tests)
    written = (tmp_path / "junit.xml").read_text()
    assert 'tests="2" failures="1"' in written
    assert "it � broke" in written

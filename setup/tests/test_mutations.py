"""`setup/mutations`: its input, its refusals, and the cases in which it reports a defect as detected."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from suites.catalogue import BY_NAME, CHECK

ROOT = Path(__file__).resolve().parents[2]
FIELDS = {
    "file": "crates/a.rs",
    "text": "a < b",
    "replacement": "a <= b",
    "breaks": "Everything.",
    "test": "crates/tests/b.rs::holds",
    "suite": "rust",
}


def loaded() -> ModuleType:
    loader = SourceFileLoader("mutations", str(ROOT / "setup" / "mutations"))
    spec = spec_from_loader("mutations", loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules["mutations"] = module
    loader.exec_module(module)
    return module


mutations = loaded()


def mutation(**fields: str) -> Any:
    return mutations.Mutation(name="one", **{**FIELDS, **fields})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "crates" / "tests").mkdir(parents=True)
    (tmp_path / "crates" / "a.rs").write_text("if a < b {}\n")
    (tmp_path / "crates" / "tests" / "b.rs").write_text("#[test]\nfn holds() {}\n")
    return tmp_path


def test_the_list_can_be_made_and_unit_suites_see_nine_of_ten() -> None:
    listed = mutations.read(mutations.LIST.read_text())
    assert [problem for one in listed for problem in mutations.problems(one, ROOT)] == []
    assert len(listed) >= 10 and {one.suite for one in listed} <= BY_NAME.keys()
    assert sum(one.suite in CHECK for one in listed) >= 9


def test_a_mutation_is_read_and_one_with_another_field_is_refused() -> None:
    text = "[one]\n" + "".join(f"{name} = '{value}'\n" for name, value in FIELDS.items())
    assert mutations.read(text) == [mutation()]
    with pytest.raises(TypeError, match="more"):
        mutations.read(text + "more = 1\n")


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, ""),
        ({"text": "a > b"}, "its text occurs 0 times"),
        ({"text": "<"}, ""),
        ({"text": " "}, "its text occurs 4 times"),
        ({"replacement": "a < b"}, "its replacement another one"),
        ({"test": "crates/tests/b.rs::hold"}, "there is no test"),
        ({"file": "crates/absent.rs"}, "its text occurs 0 times"),
    ],
)
def test_what_is_wrong_with_a_mutation_is_named(root: Path, fields: dict[str, str], wrong: str) -> None:
    found = list(mutations.problems(mutation(**fields), root))
    assert (found == []) if not wrong else (len(found) == 1 and wrong in found[0])


@pytest.mark.parametrize(
    ("test", "words", "folder"),
    [
        ("rust-core/crates/wal/tests/log.rs::it", "--workspace --exclude proofgate-pybind --test log", "rust-core"),
        ("rust-core/crates/wal/tests/log/a.rs::it", "--workspace --exclude proofgate-pybind --test log", "rust-core"),
        ("rust-core/crates/wal/src/a.rs::it", "--package proofgate-wal --lib", "rust-core"),
        ("gateway/tests/test_a.py::test_it", "tests/test_a.py::test_it", "gateway"),
    ],
)
def test_the_test_alone_is_run(test: str, words: str, folder: str) -> None:
    command, place = mutations.command(mutation(test=test))
    assert words in " ".join(command) and place == folder


@pytest.mark.parametrize(
    ("test", "output", "seen"),
    [
        ("a.rs::it", "test it ... FAILED\n", True),
        ("a.rs::it", "test tests::it ... FAILED\n", True),
        ("a.rs::it", "test it ... ok\n", False),
        ("a.rs::it", "error[E0308]: mismatched types\n", False),
        ("a.py::test_it", "FAILED tests/a.py::test_it[one] - assert 1 == 2\n", True),
        ("a.py::test_it", "ERROR tests/a.py::test_it - ImportError\n", False),
    ],
)
def test_only_the_tests_own_failure_counts(test: str, output: str, seen: bool) -> None:
    assert mutations.sees(mutation(test=test), output) is seen

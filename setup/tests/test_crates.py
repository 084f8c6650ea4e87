"""`setup/crates`, on crates and manifests made up for it."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def loaded() -> ModuleType:
    loader = SourceFileLoader("crates", str(ROOT / "setup" / "crates"))
    spec = spec_from_loader("crates", loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules["crates"] = module
    loader.exec_module(module)
    return module


crates = loaded()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    return tmp_path


def crate(folder: Path, **files: str) -> Any:
    for name, text in files.items():
        path = folder / "src" / f"{name.replace('__', '/')}.rs"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return crates.Crate(folder)


def test_the_crates_are_as_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert crates.main([]) == 0, capsys.readouterr().err
    assert "0 dependencies lead up the layers" in capsys.readouterr().out


def test_files_that_use_each_other_through_a_third_one_are_a_circle(folder: Path) -> None:
    read = crate(
        folder,
        lib="mod a;\nmod b;\nmod c;\nmod d;",
        a="use crate::b::B;",
        b="fn of(c: &crate::c::C) {}",
        c="use super::{a::A, d};",
        d="use std::fmt;",
    )
    assert read.circles() == [[("a",), ("b",), ("c",)]]


def test_parent_and_child_that_use_each_other_are_a_circle(folder: Path) -> None:
    read = crate(folder, lib="mod a;", a="mod child;\nuse child::Child;\nstruct A;", a__child="use super::A;")
    assert read.circles() == [[("a",), ("a", "child")]]


def test_what_a_file_shows_of_another_one_is_used_where_it_is(folder: Path) -> None:
    read = crate(
        folder,
        lib="mod a;\nmod b;\nmod error;\npub use error::Error;\npub use a::A;",
        a="mod part;\npub use part::Part;",
        a__part="use crate::Error;",
        b="use crate::a::Part;",
        error="",
    )
    used = {(source, target) for source, target in read.arrows() if source != ("a",)}
    assert used == {(("a", "part"), ("error",)), (("b",), ("a", "part"))}
    assert read.circles() == []


def test_tests_comments_and_strings_count_neither_as_uses_nor_as_lines(folder: Path) -> None:
    read = crate(
        folder,
        lib="mod a;\nmod b;",
        a='//! Of [crate::b].\n\n/* crate::b::B */\nconst SAID: &str = "crate::b::B";\n',
        b="use crate::a::A;\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n#[cfg(test)]\nuse crate::c::C;\n",
    )
    assert read.circles() == []
    assert {module: file.lines for module, file in read.files.items()} == {(): 2, ("a",): 1, ("b",): 1}


def test_a_block_within_a_file_is_of_that_file(folder: Path) -> None:
    read = crate(
        folder,
        lib="mod a;\nmod b;",
        a="mod part {\n    use super::super::b::B;\n    use super::A;\n}",
        b="",
    )
    assert read.arrows() == {(("a",), ("b",))}


MANIFESTS = {
    "low": '[dependencies]\nserde = "1"',
    "high": "[dependencies]\nproofgate-low.workspace = true",
    "pure": "[dependencies]",
    "door": "[dependencies]\nproofgate-high.workspace = true",
}


def arrows_up(**manifests: str) -> list[str]:
    return list(crates.arrows_up(MANIFESTS | manifests, ["low", "high"], ["door"]))


def test_a_dependency_up_the_layers_is_refused_and_one_down_is_not() -> None:
    assert arrows_up() == []
    wrong = arrows_up(low="[dependencies]\nproofgate-high.workspace = true")
    assert wrong == ["low depends on high, which is a layer above it"]


def test_what_is_no_layer_depends_on_none_unless_it_stands_above_all() -> None:
    wrong = arrows_up(pure="[dependencies]\nproofgate-low.workspace = true")
    assert wrong == ["pure depends on low, which is not a layer of a worker"]


def test_what_tests_depend_on_is_no_dependency() -> None:
    assert arrows_up(low="[dependencies]\n[dev-dependencies]\nproofgate-high.workspace = true") == []


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        ({"a": 3, "b": 0}, []),
        ({"a": 4, "b": 0}, ["a has 4 files, 1 more than it may have"]),
        ({"a": 3, "b": 2}, ["b has 2 files, 2 more than it may have"]),
        ({"a": 2, "b": 0}, ["a has 2 files: lower its number in setup/crates.toml from 3"]),
        ({"b": 0}, ["there is no crate a: take it out of setup/crates.toml"]),
    ],
)
def test_a_number_may_only_fall(found: dict[str, int], wrong: list[str]) -> None:
    assert list(crates.beyond("files", found, {"a": 3}, 0)) == wrong


def test_lines_are_counted_in_hundreds() -> None:
    assert [crates.rounded(lines) for lines in (0, 1, 100, 8_999)] == [0, 100, 100, 9_000]

"""`make test` runs every existing test."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites import catalogue
from suites.catalogue import BY_NAME, STEPS
from suites.steps import ROOT, Pytest

#: Files with test names that no suite runs unchanged; the template must be filled in first.
APART = {"examples/policies/template/test_policy.py"}


def folders_of(action: Pytest) -> list[Path]:
    """The folders in which a suite finds tests."""
    return [action.folder / path for path in action.arguments if not path.startswith("-")] or [action.folder / "tests"]


def test_every_test_file_is_in_a_suite() -> None:
    roots = [folder for step in STEPS if isinstance(step.action, Pytest) for folder in folders_of(step.action)]
    files = [path for path in ROOT.rglob("test_*.py") if not {".state", "target", "build"} & set(path.parts)]
    assert len(files) > 100
    missing = [path for path in files if not any(path.is_relative_to(root) for root in roots)]
    assert [str(path.relative_to(ROOT)) for path in missing] == sorted(
        APART & {str(p.relative_to(ROOT)) for p in missing}
    )


def test_names_are_given_once_and_what_is_needed_comes_first() -> None:
    assert len(BY_NAME) == len(STEPS)
    for number, step in enumerate(STEPS):
        before = {earlier.name for earlier in STEPS[:number]}
        assert set(step.needs) <= before


def test_a_step_is_chosen_with_all_that_it_needs() -> None:
    names = [step.name for step in catalogue.with_needed(["control-plane"])]
    assert names == ["setup", "extension", "cluster-binaries", "promtool", "control-plane"]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(KeyError):
        catalogue.with_needed(["nothing"])

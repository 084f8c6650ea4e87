"""Our own cases: attacks of every pack, honest texts, and an operator's honest instructions, in two halves.

Rules are written while looking at `cases/dev`. `cases/check` was written after the rules, to measure them on unseen
texts; no rule is changed for one of its cases. Anyone who must look at its cases moves them to `dev` and writes new
ones.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.scoring.engine import Event
from bench.scoring.rules import Direction

FOLDER = Path(__file__).parent / "cases"
DIRECTIONS: tuple[Direction, ...] = ("request", "response")

Kind = Literal["attack", "benign", "personal", "instructions"]
Half = Literal["dev", "check"]

HALVES: tuple[Half, ...] = ("dev", "check")


@dataclass(frozen=True)
class Case:
    """One text of a set. `group` is the pack that must stop an attack, or the subject of an honest text."""

    id: str
    group: str
    kind: Kind
    event: Event
    half: Half = "dev"


def own_cases() -> list[Case]:
    """All cases of the repository. Raises ValueError for an id that is used twice."""
    cases: list[Case] = []
    for half in HALVES:
        for path in sorted((FOLDER / half).glob("attacks/*.toml")):
            cases.extend(_attacks(path, half))
        for path in sorted((FOLDER / half).glob("benign/*.toml")):
            cases.extend(_honest(path, half))
        for path in sorted((FOLDER / half).glob("instructions/*.toml")):
            cases.extend(_instructions(path, half))
    ids = [case.id for case in cases]
    if twice := {case_id for case_id in ids if ids.count(case_id) > 1}:
        raise ValueError(f"case ids are used twice: {', '.join(sorted(twice))}")
    return cases


def _attacks(path: Path, half: Half) -> list[Case]:
    document = tomllib.loads(path.read_text())
    return [
        Case(case_id, path.stem, "attack", Event(text, direction), half)
        for direction in DIRECTIONS
        for case_id, text in document.get(direction, {}).items()
    ]


def _instructions(path: Path, half: Half) -> list[Case]:
    """Instructions of an operator to the model, with ids like those of honest texts."""
    texts = tomllib.loads(path.read_text())["request"]
    return [
        Case(f"{half}-{path.stem}-{number}", path.stem, "instructions", Event(text), half)
        for number, text in enumerate(texts, 1)
    ]


def _honest(path: Path, half: Half) -> list[Case]:
    """Honest texts have no names, so their ids consist of the half, the file, the kind and the position, from 1."""
    document = tomllib.loads(path.read_text())
    kinds: tuple[tuple[Kind, dict[str, list[str]]], ...] = (
        ("benign", {direction: document.get(direction, []) for direction in DIRECTIONS}),
        ("personal", document.get("personal", {})),
    )
    return [
        Case(f"{half}-{path.stem}-{kind}-{direction}-{number}", path.stem, kind, Event(text, direction), half)
        for kind, texts in kinds
        for direction in DIRECTIONS
        for number, text in enumerate(texts.get(direction, []), 1)
    ]

"""Our own cases: attacks of every pack, honest texts, and an operator's honest instructions, in two halves.

Rules are written while looking at `cases/dev`. `cases/check` was written when the rules were done, to tell how well
they do on what they were not written for; no rule is changed for a case of it. Whoever has to look at its cases moves
them to `dev` and writes new ones.
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
    """One text of a set. Of an attack, `group` is the pack that has to stop it; of an honest text, its subject."""

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
    """What an operator tells the model; the ids are made as those of honest texts."""
    texts = tomllib.loads(path.read_text())["request"]
    return [
        Case(f"{half}-{path.stem}-{number}", path.stem, "instructions", Event(text), half)
        for number, text in enumerate(texts, 1)
    ]


def _honest(path: Path, half: Half) -> list[Case]:
    """Honest texts have no names: their ids are made of the half, the file, the kind and the position, from 1."""
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

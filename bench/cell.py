"""One measurement: a system in a scenario in a turn."""

from __future__ import annotations

from dataclasses import dataclass


class CellError(Exception):
    """A tool printed a text that is not a measurement."""


@dataclass(frozen=True)
class Cell:
    """The figures of a measurement. A cell with failures is void, because its figures measure something else."""

    figures: dict[str, float]
    failures: int = 0
    reason: str = ""

"""One measurement: a system in a scenario in a turn."""

from __future__ import annotations

from dataclasses import dataclass


class CellError(Exception):
    """A tool printed something that is no measurement."""


@dataclass(frozen=True)
class Cell:
    """What was measured. A cell with failures is void: its figures are of something else."""

    figures: dict[str, float]
    failures: int = 0
    reason: str = ""

"""Refusals by single models, from the gateway's own table, so that no stand-in accepts what the table says is refused.

The error messages are the providers', as quoted in clients' bug reports, which the table names as sources.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

from proofgate import _core


@dataclass(frozen=True)
class Known:
    """The known constraints of one model."""

    names: frozenset[str]
    """Of constraints without a value, as the table calls them."""
    levels: tuple[str, ...] | None
    """The levels of effort that it takes; None where they are not known."""

    def __contains__(self, name: str) -> bool:
        return name in self.names


@cache
def known(model: str) -> Known:
    """The table's constraints of a model, by the provider's name for it."""
    constraints = [row["constraint"] for row in json.loads(_core.model_constraints(model))]
    levels = [tuple(found["EffortLevels"]) for found in constraints if isinstance(found, dict)]
    names = frozenset(found for found in constraints if isinstance(found, str))
    return Known(names, levels[0] if levels else None)

"""Refusals by single models, from the gateway's own table, so that stand-ins accept no request that it excludes.

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
    """The constraints without a value, by their names in the table."""
    levels: tuple[str, ...] | None
    """The effort levels that the model accepts; None if they are not known."""

    def __contains__(self, name: str) -> bool:
        return name in self.names


@cache
def known(model: str) -> Known:
    """The table's constraints of a model, by the provider's name for it."""
    constraints = [row["constraint"] for row in json.loads(_core.model_constraints(model))]
    levels = [tuple(found["EffortLevels"]) for found in constraints if isinstance(found, dict)]
    names = frozenset(found for found in constraints if isinstance(found, str))
    return Known(names, levels[0] if levels else None)

"""The number of examples for each property test."""

import os

from hypothesis import settings

#: `make properties` tries new random examples; every other run repeats the same examples.
_FACTOR = int(os.environ.get("PROOFGATE_PROPERTY_FACTOR", "1"))


def examples(number: int) -> settings:
    """Return the setting for a property whose examples are slow."""
    return settings(max_examples=number * _FACTOR)

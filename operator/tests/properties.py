"""How many examples a property is tried with."""

import os

from hypothesis import settings

#: `make properties` looks for what nobody has seen; every other run tries the same examples.
_FACTOR = int(os.environ.get("PROOFGATE_PROPERTY_FACTOR", "1"))


def examples(number: int) -> settings:
    """Return the setting for a property whose examples take long."""
    return settings(max_examples=number * _FACTOR)

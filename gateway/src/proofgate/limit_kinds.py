"""The kinds of limits, as the core's table has them: whoever names or shows limits reads them here."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic.alias_generators import to_camel

from proofgate import _core


class LimitKind(NamedTuple):
    """What a limit counts, and in which time."""

    #: The schema's field, in dollars as text where it counts money.
    name: str
    #: Its field on the admin port, in nanodollars where it counts money.
    field: str
    #: The code of a request that it refuses.
    code: str
    quantity: Literal["requests", "tokens", "concurrency", "money"]
    #: A minute slides; days and months are those of UTC; "now" is what is in flight.
    period: Literal["minute", "day", "month", "now"]

    @property
    def alias(self) -> str:
        """The schema's field as files and manifests spell it."""
        return to_camel(self.name)

    @property
    def is_money(self) -> bool:
        """Whether it counts nanodollars."""
        return self.quantity == "money"


#: In the order in which they are shown.
LIMIT_KINDS = tuple(LimitKind(*row) for row in _core.limit_kinds())

"""The kinds of limits, from the core's table."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic.alias_generators import to_camel

from proofgate import _core


class LimitKind(NamedTuple):
    """A kind of limit: what it counts, and in which period."""

    #: Field of the schema; amounts of money are dollars as text.
    name: str
    #: Field on the admin port; amounts of money are nanodollars.
    field: str
    #: Error code of requests that the limit refuses.
    code: str
    quantity: Literal["requests", "tokens", "concurrency", "money"]
    #: The window: a sliding minute, a UTC day, a UTC month, or "now" for requests in flight.
    period: Literal["minute", "day", "month", "now"]

    @property
    def alias(self) -> str:
        """The schema's field as files and manifests spell it."""
        return to_camel(self.name)

    @property
    def is_money(self) -> bool:
        """Whether the limit counts nanodollars."""
        return self.quantity == "money"


#: All kinds of limits, in the order of display.
LIMIT_KINDS = tuple(LimitKind(*row) for row in _core.limit_kinds())

"""Parser of the API's quantities.

Source: Kubernetes' API reference, "Quantity": a decimal number with a suffix or an exponent.
"""

import re
from decimal import Decimal

_QUANTITY = re.compile(
    r"(?P<number>[+-]?([0-9]+\.?[0-9]*|\.[0-9]+))"
    r"((?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,2}))?"
)
_UNIT_FACTORS: dict[str | None, Decimal] = {None: Decimal(1)}
_UNIT_FACTORS |= {suffix: Decimal(1000) ** -power for power, suffix in enumerate("mun", start=1)}
_UNIT_FACTORS |= {suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)}
_UNIT_FACTORS |= {f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)}


def parse_quantity(text: object) -> Decimal | None:
    """Return the value of a quantity in its unit (cores, bytes, pages); None if it is not a quantity."""
    match = None if isinstance(text, bool) else _QUANTITY.fullmatch(str(text))
    if match is None:
        return None
    return Decimal(match["number"]).scaleb(int(match["exponent"] or 0)) * _UNIT_FACTORS[match["suffix"]]


def parse_bytes(text: str) -> int:
    """Return a quantity of bytes, rounded down. Raises ValueError if it is not a quantity."""
    worth = parse_quantity(text)
    if worth is None:
        raise ValueError(f"{text!r} is not a quantity")
    return int(worth)

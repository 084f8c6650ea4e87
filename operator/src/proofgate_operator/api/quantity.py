"""What the API's quantities are worth."""

import re
from decimal import Decimal

_QUANTITY = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)(?P<suffix>Ki|Mi|Gi|Ti|Pi|m|k|M|G|T|P)?")
_WORTH: dict[str | None, Decimal] = {None: Decimal(1), "m": Decimal(1) / 1000}
_WORTH |= {suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTP", start=1)}
_WORTH |= {f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTP", start=1)}


def quantity(text: object) -> Decimal | None:
    """Return what a quantity is worth, in its unit (cores, bytes); None if it is none."""
    match = _QUANTITY.fullmatch(str(text))
    return Decimal(match["number"]) * _WORTH[match["suffix"]] if match else None


def whole(text: str) -> int:
    """Return a quantity of bytes, rounded down. Raises ValueError if it is none."""
    worth = quantity(text)
    if worth is None:
        raise ValueError(f"{text!r} is no quantity")
    return int(worth)

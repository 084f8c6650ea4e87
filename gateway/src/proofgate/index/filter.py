"""Queries to an index: a filter, and a cursor that continues after a page."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from ipaddress import IPv6Address, ip_address
from typing import Self

from proofgate import times
from proofgate.index.errors import IndexUnusableError
from proofgate.index.schema import VERDICTS

_MAX_TEXT_LENGTH = 512
#: Maximum bytes of an end user's name in a record (the core's `Attribution::LONGEST_NAME`).
_MAX_NAME_BYTES = 128
_NANODOLLARS = 1_000_000_000
_MAX_INT64 = (1 << 63) - 1
#: Maximum number of digits before the decimal point of a cost.
_MAX_COST_DIGITS = 10
_TRACE_ID = re.compile("[0-9a-f]{32}")
#: Outcome of an exchange without a known end.
OPEN = "open"


@dataclass(frozen=True)
class Filter:
    """A filter for exchanges; None in a field matches all. Times are in Unix microseconds, `until` is
    exclusive."""

    tenant: str | None = None
    since: int | None = None
    until: int | None = None
    model: str | None = None
    provider: str | None = None
    verdict: str | None = None
    outcome: str | None = None
    rule: str | None = None
    id: str | None = None
    key: str | None = None
    key_name: str | None = None
    min_cost: int | None = None
    session: str | None = None
    end_user: str | None = None
    end_user_name: str | None = None
    client_address: str | None = None
    agent: str | None = None
    trace_id: str | None = None
    newest: bool = False

    @classmethod
    def parse(cls, asked: Mapping[str, str | None], *, newest: bool = False) -> Self:
        """Parses texts from a command line or a query. Raises IndexUnusableError (`bad_filter`)."""
        texts = {name: text for name, text in asked.items() if text is not None}
        for name, text in texts.items():
            if not text or len(text) > _MAX_TEXT_LENGTH:
                raise _bad(f"{name} is empty or longer than {_MAX_TEXT_LENGTH} characters")
        verdict = texts.get("verdict")
        if verdict is not None and verdict not in VERDICTS:
            raise _bad(f"verdict must be one of {', '.join(VERDICTS)}")
        for name in ("end_user", "trace_id"):
            if name in texts and not _TRACE_ID.fullmatch(texts[name]):
                raise _bad(f"{name} must be 32 lower-case hexadecimal digits")
        since, until = (_time(name, texts[name]) if name in texts else None for name in ("since", "until"))
        if since is not None and until is not None and since >= until:
            raise _bad("since must be before until")
        plain = (
            *("tenant", "model", "provider", "outcome", "rule", "id", "key", "key_name"),
            *("session", "end_user", "agent", "trace_id"),
        )
        return cls(
            **{name: texts.get(name) for name in plain},
            end_user_name=_truncate_name(texts.get("end_user_name")),
            client_address=_address(texts["client_address"]) if "client_address" in texts else None,
            verdict=verdict,
            since=since,
            until=until,
            min_cost=_cost(texts["min_cost"]) if "min_cost" in texts else None,
            newest=newest,
        )

    def to_dict(self) -> dict[str, str | int | bool]:
        """Returns the fields that are set."""
        return {name: value for name, value in asdict(self).items() if value not in (None, False)}


#: Names of the filters on command lines and in queries.
FILTER_NAMES = tuple(field.name for field in fields(Filter) if field.name != "newest")


@dataclass(frozen=True)
class Cursor:
    """The row after which a query continues, and the version of the index in which it started."""

    filter: Filter
    generation: str
    version: int
    after: tuple[int, int, int]

    def encode(self) -> str:
        """Encodes the cursor as text for a URL."""
        told = {"v": 1, "g": self.generation, "p": self.version, "a": self.after, "f": self.filter.to_dict()}
        text = json.dumps(told, separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()

    @classmethod
    def decode(cls, text: str, wanted: Filter) -> Self:
        """Decodes a cursor, which must belong to the same query. Raises IndexUnusableError (`bad_cursor`,
        `cursor_differs`)."""
        try:
            told = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
            after = tuple(_number(part) for part in told["a"])
            asked, generation, version = told["f"], told["g"], _number(told["p"])
            well_formed = told["v"] == 1 and len(after) == 3 and isinstance(generation, str)
            names = {field.name for field in fields(Filter)}
            well_formed = well_formed and isinstance(asked, dict) and asked.keys() <= names
        except (ValueError, KeyError, TypeError, RecursionError):
            well_formed = False
        if not well_formed:
            raise IndexUnusableError(
                "the cursor is not valid for this index: use one from a response", "bad_cursor"
            )
        if asked != wanted.to_dict():
            raise IndexUnusableError(
                "the cursor belongs to another query: repeat the filters of the first page",
                "cursor_differs",
            )
        return cls(wanted, generation, version, (after[0], after[1], after[2]))


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_INT64:
        raise TypeError
    return value


def _time(name: str, text: str) -> int:
    try:
        return times.parse_exclusive_end(text) if name == "until" else times.parse_start(text)
    except ValueError:
        raise _bad(f"{name}: expected a day or a time in ISO 8601, for example {times.EXAMPLES}") from None


def _truncate_name(name: str | None) -> str | None:
    """Truncates a name to the maximum bytes in records, at the end of a character."""
    return None if name is None else name.encode()[:_MAX_NAME_BYTES].decode(errors="ignore")


def _address(text: str) -> str:
    """Returns an IP address in the format of RFC 5952, as in records."""
    try:
        address = ip_address(text)
    except ValueError:
        raise _bad("client_address must be an IP address, such as 192.0.2.7 or 2001:db8::7") from None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(address) if mapped is None else f"::ffff:{mapped}"


def _cost(text: str) -> int:
    nanodollars = -1
    with suppress(ArithmeticError):
        dollars = Decimal(text)
        # Formatting the digits of a larger number would take minutes.
        if dollars.is_finite() and dollars.adjusted() <= _MAX_COST_DIGITS:
            nanodollars = int(dollars * _NANODOLLARS)
    if not 0 <= nanodollars <= _MAX_INT64:
        raise _bad("min_cost must be an amount in US dollars, such as 0.05")
    return nanodollars


def _bad(message: str) -> IndexUnusableError:
    return IndexUnusableError(message, "bad_filter")

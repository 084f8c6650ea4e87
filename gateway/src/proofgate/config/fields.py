"""The types of fields in the configuration: the format of each, and the message about an invalid value."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from proofgate.address import split_address
from proofgate.forward_proxy import NoProxyRule

_DNS_NAME = re.compile(
    r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?)*"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_DATE_FORMAT_HINT = "write a date with time and zone (RFC 3339), for example 2026-12-31T00:00:00Z"


def unix_seconds(text: str) -> int:
    """Parses a date of RFC 3339 (section 5.6) to seconds since 1970, without fractions. Raises ValueError."""
    if not _DATE.fullmatch(text):
        raise ValueError(_DATE_FORMAT_HINT)
    try:
        seconds = int(datetime.fromisoformat(text.upper()).timestamp())
    except (ValueError, OverflowError):
        raise ValueError(_DATE_FORMAT_HINT) from None
    if seconds < 0:
        raise ValueError("write a date after 1970")
    return seconds


def _instant(value: object) -> int:
    if not isinstance(value, str):
        raise ValueError(_DATE_FORMAT_HINT)  # noqa: TRY004 - pydantic turns a ValueError into a problem of the field
    return unix_seconds(value)


def _address(text: str) -> str:
    split_address(text)
    return text


def _no_proxy(text: str) -> str:
    NoProxyRule.parse(text)
    return text


def _log_origin(text: str) -> str:
    # The origin is a line of the checkpoint and names its signature: no space, no '+' (C2SP signed-note).
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}", text) or text.endswith("/") or "//" in text:
        raise ValueError(
            "write a schema-less URL such as proofgate.example.com/team: letters, digits and . _ - /"
        )
    return text


def _dns_name(text: str) -> str:
    if len(text) > 253 or not _DNS_NAME.fullmatch(text):
        raise ValueError("write a DNS name, for example balancer.example.com")
    return text


Address = Annotated[str, AfterValidator(_address)]
NoProxyEntry = Annotated[str, AfterValidator(_no_proxy)]
LogOrigin = Annotated[str, AfterValidator(_log_origin)]
DnsName = Annotated[str, AfterValidator(_dns_name)]
Instant = Annotated[int, BeforeValidator(_instant), WithJsonSchema({"type": "string", "format": "date-time"})]

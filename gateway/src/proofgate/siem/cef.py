"""Events in the Common Event Format, version 0 (OpenText ArcSight): one line, without a syslog header."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

from proofgate import __version__
from proofgate.siem.events import ExchangeEvent
from proofgate.siem.sink import is_notable

_QUIET, _NOTABLE = 1, 5
#: Field of an exchange for each key of the CEF extension.
_KEYS = {
    "externalId": "id",
    "act": "verdict",
    "reason": "outcome",
    "in": "request_bytes",
    "out": "response_bytes",
    "suid": "key",
    "sourceServiceName": "key_name",
    "destinationServiceName": "providers",
}
#: Facts without a standard key, by the custom key of their value. Another custom key has their name.
_LABELLED = {
    "cs1": "tenant",
    "cs2": "model",
    "cs3": "rules",
    "cs4": "session",
    "cs5": "agent",
    "cn1": "prompt_tokens",
    "cn2": "completion_tokens",
    "cn3": "cost_nanodollars",
    "flexNumber1": "status",
    "flexNumber2": "tenant_seq",
    "flexString1": "trace_id",
    "flexString2": "parent_agent",
}


def text(event: ExchangeEvent) -> str:
    """Formats an event as one line."""
    severity = _NOTABLE if is_notable(event) else _QUIET
    verdict = event.facts.get("verdict")
    kind = f"exchange.{verdict}" if verdict else "exchange"
    header = ("CEF:0", "Proofgate", "Proofgate", __version__, kind, "LLM exchange", str(severity))
    extension = " ".join(f"{key}={_value(value)}" for key, value in _extension(event))
    return "|".join([header[0], *map(_header, header[1:]), extension])


def _extension(event: ExchangeEvent) -> Iterator[tuple[str, Any]]:
    facts = event.facts
    start = event.time // 1000
    yield "start", start
    if facts.get("duration_us") is not None:
        yield "end", start + facts["duration_us"] // 1000
    succeeded = facts["outcome"] == "complete" and (facts.get("status") or 500) < 400
    yield "outcome", "success" if succeeded else "failure"
    endpoint = facts.get("endpoint")
    if endpoint is not None:
        method, _, path = endpoint.rpartition(" ")
        yield "requestMethod", method or "POST"
        yield "request", path
    for key, name in _KEYS.items():
        if facts.get(name) not in (None, []):
            yield key, facts[name]
    user = facts.get("end_user_name") or facts.get("end_user")
    if user is not None:
        yield "suser", user
    address = facts.get("client_address")
    if address is not None and ":" in address:
        yield "c6a2Label", "Source IPv6 Address"
        yield "c6a2", address
    elif address is not None:
        yield "src", address
    for key, name in _LABELLED.items():
        if facts.get(name) not in (None, []):
            yield f"{key}Label", name
            yield key, facts[name]
    yield "cs6Label", "record"
    yield "cs6", f"{event.origin}/{event.index}"


def _header(value: str) -> str:
    return _replace_control_characters(value).replace("\\", "\\\\").replace("|", "\\|")


def _value(value: Any) -> str:
    if isinstance(value, list):
        value = ",".join(value)
    escaped = str(value).replace("\\", "\\\\").replace("=", "\\=").replace("\n", "\\n").replace("\r", "\\r")
    return _replace_control_characters(escaped)


def _replace_control_characters(value: str) -> str:
    """Replaces line ends and control characters with blanks."""
    if value.isprintable():
        return value
    return "".join(" " if unicodedata.category(one) in ("Cc", "Zl", "Zp") else one for one in value)

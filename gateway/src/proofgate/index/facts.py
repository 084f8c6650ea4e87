"""The facts about one exchange, read from its records. Exports and their verifier share this code.

The index gets the same facts from the core. A test compares both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofgate.index.denials import effective_verdict
from proofgate.index.filter import OPEN, Filter
from proofgate.index.schema import REFUSED, VERDICTS, format_time

#: Kinds of records with which an exchange can start.
FIRST_KINDS = ("admission", "rejection")
#: Fields in which a client names its session and its end user.
ATTRIBUTION_FIELDS = ("session", "end_user", "end_user_name", "agent", "parent_agent", "trace_id")
_END_KINDS = ("completion", "aborted")


def exchange_facts(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the facts about an exchange from its parsed records in order. The names are the names in an
    index row.

    Raises KeyError, TypeError and ValueError if the records are invalid or not of one exchange.
    """
    first, *others = records
    if first["kind"] not in FIRST_KINDS or [
        record["kind"] for record in others if record["kind"] in FIRST_KINDS
    ]:
        raise ValueError("an exchange must start with one admission, or be one refusal")
    refused = first["kind"] == "rejection"
    end = first if refused else next((record for record in others if record["kind"] in _END_KINDS), {})
    notes = [record["policy"] for record in (first, end) if record.get("policy")]
    if refused:
        notes = notes[:1]
    usage = end.get("usage") or {}
    said = first.get("attribution") or {}
    attempts = [record for record in others if record["kind"] == "attempt"]
    providers = [first["provider"], *(record["provider"] for record in attempts)] if not refused else []
    return {
        "id": first["id"],
        "time": format_time(int(first["ts"])),
        "tenant": first["tenant"],
        "tenant_seq": first.get("tenant_seq"),
        "key": first.get("key", first.get("counted")) if refused else first["key"],
        "key_name": first.get("key_name"),
        "model": first.get("model") or None,
        "providers": list(dict.fromkeys(providers)),
        "endpoint": first["endpoint"],
        "verdict": VERDICTS[_verdict(first, end, notes)],
        "rules": sorted({rule for note in notes for rule in note["rules"]}),
        "outcome": end["code"] if refused else _outcome(end),
        "status": end.get("status"),
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "cost_nanodollars": end.get("cost_nanodollars"),
        "request_bytes": first["bytes"],
        "response_bytes": None if refused else end.get("bytes"),
        "duration_us": end.get("duration_us"),
        **{name: said.get(name) for name in ATTRIBUTION_FIELDS},
        "client_address": first.get("client_address"),
    }


def matches_filter(asked: Filter, told: dict[str, Any], ts: int) -> bool:
    """Whether an exchange matches a filter, by its facts and its start time (Unix microseconds)."""
    return (
        all(
            getattr(asked, name) in (None, told[name])
            for name in (
                *("tenant", "model", "verdict", "outcome", "id", "key", "key_name"),
                *("session", "end_user", "end_user_name", "client_address", "agent", "trace_id"),
            )
        )
        and (asked.since is None or ts >= asked.since)
        and (asked.until is None or ts < asked.until)
        and (asked.provider is None or asked.provider in told["providers"])
        and (asked.rule is None or asked.rule in told["rules"])
        and (asked.min_cost is None or (told["cost_nanodollars"] or -1) >= asked.min_cost)
    )


def _outcome(end: dict[str, Any]) -> str:
    return OPEN if not end else "aborted" if end["kind"] == "aborted" else str(end["outcome"])


def _verdict(first: dict[str, Any], end: dict[str, Any], notes: list[dict[str, Any]]) -> int:
    if first["kind"] == "rejection":
        return effective_verdict(REFUSED, first["code"])
    if end.get("outcome") == "policy_blocked":
        return VERDICTS.index("blocked")
    names = [
        "would_block" if note["would_block"] else "redacted" if note["redacted"] else "flagged"
        for note in notes
    ]
    return max(map(VERDICTS.index, names), default=0)

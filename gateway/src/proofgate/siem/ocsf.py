"""Events in the Open Cybersecurity Schema Framework 1.9.0: class API Activity (6003), with the profiles
`ai_operation` and `record_integrity`, and `trace` if the client named one.

The attestation has a fingerprint and no signature. It detects a change between the auditor and a reader, and
does not prove the exchange. The event has the position of the record, with which the proof can be found.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from proofgate import __version__
from proofgate.siem.events import ExchangeEvent
from proofgate.siem.sink import is_notable
from proofgate.telemetry import names

VERSION = "1.9.0"
_CATEGORY, _CLASS = 6, 6003
_CREATE, _READ, _DELETE, _OTHER = 1, 2, 4, 99
_ACTIVITIES = {"POST": (_CREATE, "Create"), "GET": (_READ, "Read"), "DELETE": (_DELETE, "Delete")}
_SUCCESS, _FAILURE = (1, "Success"), (2, "Failure")
_INFORMATIONAL, _LOW = (1, "Informational"), (2, "Low")
_SHA_256, _HEX, _JCS = 3, 1, 2
_NOT_RECORDED = "not recorded"
#: The largest integer that JCS, which writes numbers as JavaScript does, represents exactly.
_MAX_INTEGER = (1 << 53) - 1
#: Fields of an exchange without an attribute in the OCSF schema.
_UNMAPPED = (
    *("tenant_seq", "verdict", "rules", "providers", "cost_nanodollars", "duration_us", "key"),
    *("key_name", "parent_agent"),
)


def text(event: ExchangeEvent) -> str:
    """Formats an event as one line of canonical JSON."""
    return canonical_json(from_event(event)).decode()


def from_event(event: ExchangeEvent) -> dict[str, Any]:
    """Creates the OCSF event with its fingerprint."""
    found = _without_attestation(event)
    attestation: dict[str, Any] = {"uid": found["metadata"]["uid"], "chain_uid": event.origin}
    found["attestation_list"] = [attestation]
    attestation["fingerprint"] = {
        "algorithm_id": _SHA_256,
        "algorithm": "SHA-256",
        "encoding_id": _HEX,
        "encoding": "Hex",
        "serialization_id": _JCS,
        "serialization": "JCS",
        "value": hashlib.sha256(canonical_json(found)).hexdigest(),
    }
    return found


def canonical_json(value: Any) -> bytes:
    """Encodes a value by the JSON Canonicalization Scheme (RFC 8785). Its keys must be ASCII, and it must
    have no fractions and no integer beyond 2^53."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def _without_attestation(event: ExchangeEvent) -> dict[str, Any]:
    facts = {name: _clamp(value) for name, value in event.facts.items() if value not in (None, [])}
    method, path = _endpoint(facts)
    activity, activity_name = _activity(facts, method)
    status, status_name = _status(facts)
    severity, severity_name = _LOW if is_notable(event) else _INFORMATIONAL
    provider = facts.get("providers", [None])[-1]
    has_trace = "trace_id" in facts
    return _without_empty(
        {
            "category_uid": _CATEGORY,
            "category_name": "Application Activity",
            "class_uid": _CLASS,
            "class_name": "API Activity",
            "activity_id": activity,
            "activity_name": activity_name,
            "type_uid": _CLASS * 100 + activity,
            "type_name": f"API Activity: {activity_name}",
            "severity_id": severity,
            "severity": severity_name,
            "status_id": status,
            "status": status_name,
            "status_code": str(facts["status"]) if "status" in facts else None,
            "status_detail": facts["outcome"],
            "time": event.time // 1000,
            "duration": facts["duration_us"] // 1000 if "duration_us" in facts else None,
            "message": f"exchange {facts['id']}: {facts['outcome']}",
            "metadata": _metadata(event, facts, ["trace"] if has_trace else []),
            "actor": _actor(facts),
            "api": _api(facts, status),
            "src_endpoint": _source(facts),
            "dst_endpoint": {"svc_name": provider},
            "http_request": {
                "uid": facts["id"],
                "http_method": method,
                "url": {"path": path},
                "body_length": facts.get("request_bytes"),
            },
            "http_response": {"code": facts["status"], "body_length": facts.get("response_bytes")}
            if "status" in facts
            else None,
            **_ai(facts, provider),
            "trace": {"uid": facts.get("trace_id")},
            "unmapped": {name: facts.get(name) for name in _UNMAPPED},
        }
    )


def _metadata(event: ExchangeEvent, facts: dict[str, Any], further: list[str]) -> dict[str, Any]:
    return {
        "version": VERSION,
        "product": {"name": "Proofgate", "vendor_name": "Proofgate", "version": __version__},
        "profiles": ["ai_operation", "record_integrity", *further],
        "uid": f"{event.origin}/{event.index}",
        "log_name": event.origin,
        "sequence": _clamp(event.index),
        "tenant_uid": facts.get("tenant"),
        "event_code": "proofgate.exchange",
    }


def _actor(facts: dict[str, Any]) -> dict[str, Any]:
    known = {
        "app_uid": facts.get("key"),
        "app_name": facts.get("tenant"),
        "user": {"uid": facts.get("end_user"), "name": facts.get("end_user_name")},
        "session": {"uid": facts.get("session")},
    }
    return known if _without_empty(known) else {"app_name": _NOT_RECORDED}


def _source(facts: dict[str, Any]) -> dict[str, Any]:
    address = facts.get("client_address")
    return {"name": _NOT_RECORDED} if address is None else {"ip": address}


def _api(facts: dict[str, Any], status: int) -> dict[str, Any]:
    endpoint = facts.get("endpoint")
    return {
        "operation": names.OPERATIONS.get(endpoint or "", endpoint) or _NOT_RECORDED,
        "service": {"name": "Proofgate"},
        "request": {"uid": facts["id"]},
        "response": {
            "code": facts.get("status"),
            "error": facts["outcome"] if status == _FAILURE[0] else None,
        },
    }


def _ai(facts: dict[str, Any], provider: str | None) -> dict[str, Any]:
    model = {"name": facts["model"], "ai_provider": provider} if provider and "model" in facts else None
    prompt, completion = facts.get("prompt_tokens"), facts.get("completion_tokens")
    known = None if prompt is None and completion is None else (prompt or 0) + (completion or 0)
    context = {
        "uid": facts.get("session"),
        "service": {"name": "Proofgate"},
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": _clamp(known),
    }
    # In the schema, the model is part of the agent if there is one.
    agent = facts.get("agent")
    operation = {"ai_model": model} if agent is None else {"ai_agent": {"uid": agent, "ai_model": model}}
    return {**operation, "message_context": context}


def _endpoint(facts: dict[str, Any]) -> tuple[str | None, str | None]:
    """Returns method and path. An endpoint without a method means POST. A method that the gateway does not
    serve is omitted, because the schema allows only listed methods."""
    endpoint = facts.get("endpoint")
    if endpoint is None:
        return None, None
    method, space, path = endpoint.rpartition(" ")
    return (method if method in _ACTIVITIES else None) if space else "POST", path


def _activity(facts: dict[str, Any], method: str | None) -> tuple[int, str]:
    endpoint = facts.get("endpoint", "")
    if " " in endpoint and method in _ACTIVITIES:
        return _ACTIVITIES[method]
    return _OTHER, names.OPERATIONS.get(endpoint, "exchange")


def _status(facts: dict[str, Any]) -> tuple[int, str]:
    if facts["outcome"] == "complete" and "status" in facts:
        return _SUCCESS if facts["status"] < 400 else _FAILURE
    return _FAILURE


def _clamp(value: Any) -> Any:
    return min(value, _MAX_INTEGER) if isinstance(value, int) else value


def _without_empty(value: dict[str, Any]) -> dict[str, Any]:
    """Removes unknown values, and objects that are empty then."""
    found = {}
    for name, one in value.items():
        kept = _without_empty(one) if isinstance(one, dict) else one
        if kept not in (None, {}):
            found[name] = kept
    return found

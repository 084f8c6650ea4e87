"""Events for a SIEM in standard formats: OCSF by its published schema, and CEF."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from dataclasses import replace
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from ocsf.validate import SCHEMA, problems

from proofgate.index.schema import VERDICTS
from proofgate.siem import cef, ocsf
from proofgate.siem.events import ExchangeEvent
from proofgate.siem.otlp import log_record
from proofgate.siem.sink_address import SinkAddressError, parse
from proofgate.telemetry import names

EVENT = ExchangeEvent(
    1_764_086_400_123_456,
    "proofgate.dev/ns/demo/0/01M89Q0V2S1R6T3Y8B5N7C4D9E",
    7,
    {
        "id": "req_1",
        "time": "2025-11-25T16:00:00.123456Z",
        "tenant": "acme",
        "tenant_seq": 4,
        "key": "01234567",
        "model": "gpt",
        "providers": ["first", "openai"],
        "endpoint": "/v1/chat/completions",
        "verdict": "flagged",
        "rules": ["pii-card"],
        "outcome": "complete",
        "status": 200,
        "prompt_tokens": 3,
        "completion_tokens": 5,
        "cost_nanodollars": 1200,
        "request_bytes": 70,
        "response_bytes": 900,
        "duration_us": 12_345,
        "session": "s-1",
        "end_user": "8b81cecf98f9e904",
        "agent": None,
        "parent_agent": "root",
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
    },
)
END_ONLY = replace(EVENT, facts={"id": "req_1", "outcome": "aborted"})
_texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
_optional_texts = st.none() | _texts
_numbers = st.none() | st.integers(0, (1 << 63) - 1)


@st.composite
def events(draw: st.DrawFn) -> ExchangeEvent:
    """Draws an event with any facts that records can contain."""
    facts = {
        "id": draw(_texts),
        "tenant": draw(_optional_texts),
        "model": draw(_optional_texts),
        "providers": draw(st.lists(_texts, max_size=2)),
        "endpoint": draw(st.none() | st.sampled_from(sorted(names.OPERATIONS)) | _texts),
        "verdict": draw(st.sampled_from(VERDICTS)),
        "rules": draw(st.lists(_texts, max_size=2)),
        "outcome": draw(st.just("complete") | _texts),
        "status": draw(st.none() | st.integers(100, 599)),
        **{name: draw(_optional_texts) for name in ("key", "session", "end_user", "agent", "trace_id")},
        "parent_agent": draw(_optional_texts),
        "end_user_name": draw(_optional_texts),
        "key_name": draw(_optional_texts),
        "client_address": draw(st.none() | st.ip_addresses().map(str)),
    }
    for name in ("tenant_seq", "prompt_tokens", "completion_tokens", "cost_nanodollars"):
        facts[name] = draw(_numbers)
    for name in ("request_bytes", "response_bytes", "duration_us"):
        facts[name] = draw(_numbers)
    return replace(EVENT, index=draw(st.integers(0, (1 << 63) - 1)), facts=facts)


def test_a_method_that_the_schema_does_not_have_is_left_out() -> None:
    event = replace(EVENT, facts={**EVENT.facts, "endpoint": "BREW /v1/pot"})
    told = ocsf.from_event(event)
    assert problems(told) == []
    assert "http_method" not in told["http_request"]


def test_the_published_schema_is_what_the_events_are_for() -> None:
    assert SCHEMA["source"]["version"].startswith(ocsf.VERSION)
    assert SCHEMA["class"]["attributes"]["class_uid"]["enum"] == ["6003"]
    assert {"ai_operation", "record_integrity", "trace"} == set(SCHEMA["profiles"])


@pytest.mark.parametrize("event", [EVENT, END_ONLY], ids=["whole", "end only"])
def test_an_event_is_valid_by_the_published_schema(event: ExchangeEvent) -> None:
    assert problems(ocsf.from_event(event)) == []


@given(events())
def test_every_event_is_valid_by_the_published_schema(event: ExchangeEvent) -> None:
    assert problems(json.loads(ocsf.text(event))) == []


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("metadata", None, "metadata: is missing"),
        ("class_uid", 6004, "class_uid: 6004 is not one of its values"),
        ("severity_id", 7, "severity_id: 7 is not one of its values"),
        ("type_uid", 600300, "type_uid: is not"),
        ("time", "now", "time: is not a timestamp_t"),
        ("actor", {}, "actor.: at_least_one"),
        ("http_response", {"length": 1}, "http_response.code: is missing"),
        ("ai_model", {"name": "gpt"}, "ai_model.ai_provider: is missing"),
        ("attestation_list", [{"uid": "1"}], "at_least_one of fingerprint, signatures"),
        ("attestation_list", {}, "attestation_list: is not an array"),
        ("prompt", "secret", "prompt: is not an attribute"),
    ],
)
def test_the_check_itself_finds_what_is_wrong(path: str, value: Any, said: str) -> None:
    event = ocsf.from_event(EVENT)
    if value is None:
        del event[path]
    else:
        event[path] = value
    assert any(said in problem for problem in problems(event)), problems(event)


def test_a_profile_that_an_event_uses_is_named() -> None:
    event = ocsf.from_event(EVENT)
    event["metadata"]["profiles"].remove("record_integrity")
    assert problems(event) == ["metadata.profiles: record_integrity is missing"]
    assert "trace" not in ocsf.from_event(END_ONLY)["metadata"]["profiles"]


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7"])
def test_an_event_names_a_person_and_an_address_if_the_record_does(address: str) -> None:
    known = {"end_user_name": "alice@example.com", "client_address": address}
    event = replace(EVENT, facts=EVENT.facts | known)
    told, silent = ocsf.from_event(event), ocsf.from_event(EVENT)
    assert problems(told) == []
    assert told["actor"]["user"] == {"uid": EVENT.facts["end_user"], "name": "alice@example.com"}
    assert told["src_endpoint"] == {"ip": address}
    assert (silent["src_endpoint"], silent["actor"]["user"].keys()) == ({"name": "not recorded"}, {"uid"})
    extension, before = read_cef(cef.text(event))[1], read_cef(cef.text(EVENT))[1]
    assert (extension["suser"], before["suser"]) == ("alice@example.com", EVENT.facts["end_user"])
    new = {"c6a2Label": "Source IPv6 Address", "c6a2": address} if ":" in address else {"src": address}
    assert {key: extension[key] for key in extension.keys() - before.keys()} == new


def test_an_event_has_the_name_of_the_key_if_the_record_does() -> None:
    event = replace(EVENT, facts=EVENT.facts | {"key_name": "ci"})
    told = ocsf.from_event(event)
    assert problems(told) == []
    assert told["unmapped"]["key_name"] == "ci"
    assert read_cef(cef.text(event))[1]["sourceServiceName"] == "ci"


def test_an_event_says_what_the_record_does() -> None:
    event = ocsf.from_event(EVENT)
    assert event["metadata"]["uid"] == f"{EVENT.origin}/7"
    assert event["metadata"]["tenant_uid"] == "acme"
    assert (event["time"], event["duration"]) == (1_764_086_400_123, 12)
    assert event["ai_model"] == {"name": "gpt", "ai_provider": "openai"}
    assert event["message_context"]["total_tokens"] == 8
    assert (event["activity_id"], event["activity_name"], event["api"]["operation"]) == (99, "chat", "chat")
    assert (event["status"], event["severity"]) == ("Success", "Low")
    assert event["http_request"]["url"] == {"path": "/v1/chat/completions"}
    assert event["unmapped"]["rules"] == ["pii-card"]
    by_agent = ocsf.from_event(replace(EVENT, facts={**EVENT.facts, "agent": "a-1"}))
    assert by_agent["ai_agent"]["ai_model"] == event["ai_model"]
    assert "ai_model" not in by_agent
    listed = ocsf.from_event(replace(EVENT, facts={**EVENT.facts, "endpoint": "GET /v1/files"}))
    assert (listed["activity_id"], listed["http_request"]["http_method"]) == (2, "GET")
    failed = ocsf.from_event(END_ONLY)
    assert (failed["status"], failed["status_detail"], failed["severity"]) == ("Failure", "aborted", "Low")


@given(events())
def test_the_fingerprint_is_over_the_canonical_event_without_the_fingerprint(event: ExchangeEvent) -> None:
    found = json.loads(ocsf.text(event))
    [attestation] = found["attestation_list"]
    fingerprint = attestation.pop("fingerprint")
    assert attestation == {"uid": found["metadata"]["uid"], "chain_uid": event.origin}
    # rfc8785 is an independent implementation of RFC 8785.
    assert fingerprint["value"] == hashlib.sha256(rfc8785.dumps(found)).hexdigest()
    assert (fingerprint["algorithm_id"], fingerprint["encoding_id"], fingerprint["serialization_id"]) == (
        3,
        1,
        2,
    )
    assert ocsf.text(event).encode() == rfc8785.dumps(ocsf.from_event(event))


def test_a_changed_event_has_another_fingerprint() -> None:
    event = ocsf.from_event(EVENT)
    changed = copy.deepcopy(event)
    changed["status_detail"] = "incomplete"
    for one in (event, changed):
        fingerprint = one["attestation_list"][0].pop("fingerprint")["value"]
        same = hashlib.sha256(rfc8785.dumps(one)).hexdigest() == fingerprint
        assert same == (one is event)


def split_header(line: str, most: int) -> list[str]:
    """Splits at unescaped bars at most `most` times; removes escapes from the fields."""
    fields, at = [""], 0
    while at < len(line):
        if len(fields) > most:
            return [*fields[:-1], line[at:]]
        if line[at] == "|":
            fields.append("")
        else:
            at += line[at] == "\\"
            fields[-1] += line[at]
        at += 1
    return fields


def read_cef(line: str) -> tuple[list[str], dict[str, str]]:
    """Parses CEF by its specification, with the escapes of headers and extensions."""
    *header, extension = split_header(line, 7)
    parts = re.split(r"(?:^| )([A-Za-z0-9_]+)=", extension)[1:]
    unescaped = {"n": "\n", "r": "\r"}

    def plain(text: str) -> str:
        return re.sub(r"\\(.)", lambda found: unescaped.get(found[1], found[1]), text)

    return header, dict(zip(parts[::2], map(plain, parts[1::2]), strict=True))


def as_shown(text: str) -> str:
    """A text as CEF shows it: control characters are replaced, except line feed and carriage return."""
    return "".join(one if one in "\n\r" else cef._replace_control_characters(one) for one in text)


def test_an_event_in_cef_is_one_line_of_known_keys() -> None:
    line = cef.text(EVENT)
    header, extension = read_cef(line)
    assert header[:3] == ["CEF:0", "Proofgate", "Proofgate"]
    assert header[4:] == ["exchange.flagged", "LLM exchange", "5"]
    assert extension["start"] == "1764086400123"
    assert extension["end"] == "1764086400135"
    assert (extension["outcome"], extension["reason"], extension["act"]) == ("success", "complete", "flagged")
    assert (extension["cs1Label"], extension["cs1"]) == ("tenant", "acme")
    assert (extension["cs6Label"], extension["cs6"]) == ("record", f"{EVENT.origin}/7")
    assert (extension["requestMethod"], extension["request"]) == ("POST", "/v1/chat/completions")
    assert extension["destinationServiceName"] == "first,openai"
    assert read_cef(cef.text(END_ONLY))[1]["outcome"] == "failure"


@given(events())
def test_what_cef_escapes_is_read_back_and_no_value_becomes_a_key_or_a_line(event: ExchangeEvent) -> None:
    line = cef.text(event)
    assert len(line.splitlines()) == 1
    header, extension = read_cef(line)
    assert len(header) == 7
    facts, labels = event.facts, {}
    for key, name in (cef._KEYS | cef._LABELLED).items():
        if facts[name] not in (None, []):
            value = ",".join(facts[name]) if isinstance(facts[name], list) else str(facts[name])
            assert extension.pop(key) == as_shown(value), key
            if key in cef._LABELLED:
                labels[f"{key}Label"] = name
    user = facts["end_user_name"] or facts["end_user"]
    assert extension.pop("suser", None) == (user and as_shown(user))
    assert (extension.pop("src", None) or extension.pop("c6a2", None)) == facts["client_address"]
    assert extension.pop("c6a2Label", "Source IPv6 Address") == "Source IPv6 Address"
    assert {key: extension.pop(key) for key in labels} == labels
    assert set(extension) <= {"start", "end", "outcome", "requestMethod", "request", "cs6", "cs6Label"}


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_header_field_is_read_back(text: str) -> None:
    assert split_header(f"{cef._header(text)}|rest", 1) == [cef._replace_control_characters(text), "rest"]


@pytest.mark.parametrize("form", ["ocsf", "cef"])
def test_a_log_record_has_the_format_as_its_body_and_the_place_as_attributes(form: str) -> None:
    found = log_record(EVENT, form)
    body = {"ocsf": ocsf.text, "cef": cef.text}[form](EVENT)
    assert found.body.string_value == body
    assert [pair.key for pair in found.attributes] == ["proofgate.record.origin", "proofgate.record.index"]


def test_a_format_that_is_not_known_is_refused() -> None:
    with pytest.raises(SinkAddressError, match="format: expected one of attributes, ocsf, cef"):
        parse("otlp+https://collector.example?format=leef", "ledger")
    parse("otlp+https://collector.example?format=ocsf", "ledger")

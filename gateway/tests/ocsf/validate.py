"""Checks an event against the extract of the published schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMA: dict[str, Any] = json.loads((Path(__file__).parent / "api_activity.json").read_text())
#: Attributes that belong to a profile; an event with such an attribute must name the profile.
_OF_PROFILES = {
    "ai_agent": "ai_operation",
    "ai_model": "ai_operation",
    "message_context": "ai_operation",
    "attestation_list": "record_integrity",
    "trace": "trace",
}
_LONGEST = {"integer_t": (1 << 53) - 1, "long_t": (1 << 63) - 1}


def problems(event: dict[str, Any]) -> list[str]:
    """The errors of an event of the class API Activity, each with its path."""
    found = list(_of_object(event, SCHEMA["class"], ""))
    named = set(event.get("metadata", {}).get("profiles", ()))
    used = {profile for name, profile in _OF_PROFILES.items() if name in event}
    found += [f"metadata.profiles: {name} is missing" for name in sorted(used - named)]
    found += [f"metadata.profiles: {name} is not known" for name in sorted(named - set(SCHEMA["profiles"]))]
    if event.get("type_uid") != event.get("class_uid", 0) * 100 + event.get("activity_id", 0):
        found.append("type_uid: is not class_uid * 100 + activity_id")
    if event.get("activity_id") == 99 and not event.get("activity_name"):
        found.append("activity_name: is missing for activity_id 99")
    return found


def _of_object(value: Any, definition: dict[str, Any], path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: is not an object"
        return
    attributes = definition["attributes"]
    for name in value:
        if name not in attributes:
            yield f"{path}{name}: is not an attribute"
    for name, fact in attributes.items():
        if name in value:
            yield from _of_attribute(value[name], fact, f"{path}{name}")
        elif fact.get("required"):
            yield f"{path}{name}: is missing"
    for kind, names in definition["constraints"].items():
        there = sum(name in value for name in names)
        if (kind == "at_least_one" and there == 0) or (kind == "just_one" and there != 1):
            yield f"{path}: {kind} of {', '.join(names)}"


def _of_attribute(value: Any, fact: dict[str, Any], path: str) -> Iterator[str]:
    if fact.get("array"):
        if not isinstance(value, list):
            yield f"{path}: is not an array"
            return
        for number, one in enumerate(value):
            yield from _of_attribute(one, {**fact, "array": False}, f"{path}[{number}]")
        return
    if "enum" in fact and str(value) not in fact["enum"]:
        yield f"{path}: {value} is not one of its values"
    if fact["type"] in SCHEMA["types"]:
        yield from _of_type(value, fact["type"], path)
    elif fact["type"] != "object":
        yield from _of_object(value, SCHEMA["objects"][fact["type"]], f"{path}.")
    elif not isinstance(value, dict):
        yield f"{path}: is not an object"


def _of_type(value: Any, name: str, path: str) -> Iterator[str]:
    stated = SCHEMA["types"][name]
    base = stated.get("type", name)
    base = SCHEMA["types"][base].get("type", base)
    if base == "string_t":
        if not isinstance(value, str):
            yield f"{path}: is not a text"
        elif len(value) > stated.get("max_len", len(value)) or not re.search(stated.get("regex", ""), value):
            yield f"{path}: is not a {name}"
    elif base in _LONGEST:
        low, high = stated.get("range", (-_LONGEST[base], _LONGEST[base]))
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            yield f"{path}: is not a {name}"

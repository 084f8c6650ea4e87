"""Rules of JSON schemas for answers (OpenAI, "Structured Outputs: supported schemas"; Anthropic's are similar)."""

from __future__ import annotations

from typing import Any

#: Keywords that Anthropic refuses in a strict schema.
NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def strict_fault(schema: Any, needs_all: bool, place: str = "()") -> str | None:
    """The fault of a strict schema in the provider's words, or None. OpenAI requires every property to be required."""
    if not isinstance(schema, dict):
        return None
    if schema.get("type") == "object" or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            if needs_all:
                return f"In context={place}, 'additionalProperties' is required to be supplied and to be false."
            return "For 'object' type, 'additionalProperties' must be explicitly set to false"
        missing = [name for name in schema.get("properties", {}) if name not in schema.get("required", [])]
        if needs_all and missing:
            return (
                f"In context={place}, 'required' is required to be supplied and to be an array including every key in "
                f"properties. Missing '{missing[0]}'."
            )
    refused = [] if needs_all else [name for name in NUMBERS if name in schema]
    if refused:
        return f"For '{schema.get('type')}' type, properties {', '.join(refused)} are not supported"
    inner = [*schema.get("properties", {}).items(), *schema.get("$defs", {}).items(), ("items", schema.get("items"))]
    inner += [("anyOf", choice) for choice in schema.get("anyOf", [])]
    for name, value in inner:
        fault = strict_fault(value, needs_all, f"('properties', '{name}')")
        if fault:
            return fault
    return None

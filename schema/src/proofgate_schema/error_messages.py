"""Plain messages about invalid values, which the gateway and the operator print instead of pydantic's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

#: The expected value by pydantic's error code, with placeholders for the fields of its context.
_EXPECTED = {
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "tuple_type": "a list",
    "list_type": "a list",
    "too_short": "a list of at least {min_length}",
    "too_long": "a list of at most {max_length}",
    "dict_type": "a mapping of fields",
    "model_type": "a mapping of fields",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "greater_than_equal": "a number of at least {ge}",
    "greater_than": "a number above {gt}",
    "less_than_equal": "a number of at most {le}",
    "less_than": "a number below {lt}",
    "multiple_of": "a multiple of {multiple_of}",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
}


def plain_message(detail: ErrorDetails) -> str:
    """Return the message for one error of pydantic, without the invalid value."""
    if detail["type"] == "missing":
        return "this field is required: add it"
    expected = _EXPECTED.get(detail["type"])
    if expected is None:
        return detail["msg"].removeprefix("Value error, ")
    return f"expected {expected.format_map(detail.get('ctx', {}))}"

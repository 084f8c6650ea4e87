"""Header and body fields of all requests to a provider."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from proofgate_schema.annotations import PRESERVE_UNKNOWN_FIELDS, KubernetesOverride
from proofgate_schema.fields import HEADER_NAME, file_validator
from proofgate_schema.reserved_fields import RESERVED_HEADERS, RESERVED_PREFIXES, is_read_by_gateway
from proofgate_schema.section import Section

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_VALUE = re.compile(r"[!-~]([ -~]{0,4094}[!-~])?")
_VALUE_MESSAGE = "write one line of at most 4096 characters of printable ASCII"
MAX_BODY_FIELDS = 16
#: The maximum length of all fields as JSON, in characters.
MAX_BODY_FIELDS_LENGTH = 16_384


def header_value_error(text: str) -> str | None:
    """Return what is wrong with a header's value, without quoting it; None if it is valid."""
    return None if _VALUE.fullmatch(text) else _VALUE_MESSAGE


def _header_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(
            "write the name of a header field, such as OpenAI-Organization, of at most 64 characters"
        )
    if text.lower() in RESERVED_HEADERS or text.lower().startswith(RESERVED_PREFIXES):
        raise ValueError(
            "this header is not allowed: the gateway sets it, or it is for credentials or the connection"
        )
    return text


def _header_value(text: str) -> str:
    if fault := header_value_error(text):
        raise ValueError(fault)
    return text


def _body_fields(fields: dict[str, Any]) -> dict[str, Any]:
    if len(fields) > MAX_BODY_FIELDS:
        raise ValueError(f"write at most {MAX_BODY_FIELDS} fields")
    for name in fields:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name):
            raise ValueError("a name has at most 64 letters, digits, '_' and '-', and begins with a letter")
        if is_read_by_gateway(name):
            raise ValueError(f"{name} is a field that the gateway reads itself: only clients can set it")
    try:
        text = json.dumps(fields, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ValueError("write values that JSON supports") from None
    if len(text) > MAX_BODY_FIELDS_LENGTH:
        raise ValueError(f"the fields are longer than {MAX_BODY_FIELDS_LENGTH} characters")
    return fields


class ProviderHeader(Section):
    """A header field of every request to a provider. A secret value has a separate field."""

    name: Annotated[
        str,
        file_validator(_header_name),
        HEADER_NAME,
    ]
    """Name of the header field, for example OpenAI-Organization. Credentials, headers of the connection, and
    headers that the workers write themselves are not allowed."""
    value: (
        Annotated[
            str,
            file_validator(_header_value),
            KubernetesOverride(
                "the API server checks patterns and lengths",
                {"minLength": 1, "maxLength": 4096, "pattern": "^[!-~]([ -~]*[!-~])?$"},
            ),
        ]
        | None
    ) = None
    """Value of the header field, if it is not a secret."""


BodyFields = Annotated[dict[str, Any], file_validator(_body_fields), PRESERVE_UNKNOWN_FIELDS]

"""The section `cors`: web pages that may call the gateway."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from proofgate_schema.annotations import UNIQUE_ITEMS, KubernetesOverride
from proofgate_schema.fields import NonEmptyTupleOf
from proofgate_schema.section import Section
from proofgate_schema.urls import WebOrigin


def _require_exclusive_wildcard(origins: tuple[str, ...]) -> tuple[str, ...]:
    if "*" in origins and len(origins) > 1:
        raise ValueError("'*' allows every origin: remove '*', or remove all other origins")
    return origins


class Cors(Section):
    """Web pages that may call the gateway from a browser. Without this section, no web page may call it."""

    allowed_origins: Annotated[
        NonEmptyTupleOf[WebOrigin],
        Field(max_length=32),
        AfterValidator(_require_exclusive_wildcard),
        UNIQUE_ITEMS,
        KubernetesOverride("the API server checks only lengths", {"minItems": 1}),
    ]
    """Origins that may call the gateway. Write an origin as browsers send it, for example
    https://app.example.com: lower case, no path, no default port. `*` alone allows every origin."""
    max_age_seconds: Annotated[int, Field(ge=0, le=86_400)] = 600
    """Seconds for which a browser may cache the response to a preflight request."""

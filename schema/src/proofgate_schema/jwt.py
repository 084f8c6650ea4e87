"""The section `jwt`: JSON Web Tokens instead of API keys."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from proofgate_schema.annotations import UNIQUE_ITEMS, KubernetesOverride
from proofgate_schema.fields import NonEmptyTupleOf
from proofgate_schema.section import Section
from proofgate_schema.urls import KeySetURL

# Only asymmetric algorithms: with HS256, anyone who can verify a token can also create one (RFC 8725, section
# 3.1).
Algorithm = Literal["RS256", "ES256", "EdDSA"]


def _claim(text: str) -> str:
    if not re.fullmatch(r"[!-~]{1,512}", text):
        raise ValueError("write 1 to 512 printable ASCII characters without spaces, as in the token")
    return text


def _max_items(items: int, reason: str) -> KubernetesOverride:
    return KubernetesOverride(reason, {"minItems": 1, "maxItems": items})


Claim = Annotated[
    str,
    AfterValidator(_claim),
    KubernetesOverride(
        "the API server checks patterns and lengths",
        {"minLength": 1, "maxLength": 512, "pattern": r"^[!-~]+$"},
    ),
]


class Issuer(Section):
    """An issuer whose tokens are accepted."""

    issuer: Claim
    """Required `iss` claim of the token, compared byte for byte. On Kubernetes, a change replaces HAProxy's
    pods."""
    audiences: Annotated[
        NonEmptyTupleOf[Claim], UNIQUE_ITEMS, _max_items(8, "etcd limits the size of an object")
    ]
    """Accepted audiences. The token's `aud` claim must contain one of them."""
    jwks_url: Annotated[KeySetURL | None, Field(alias="jwksURL")] = None
    """https URL at which the issuer publishes its keys (RFC 7517). The workers fetch the keys themselves. In
    the gateway's file, an http URL on loopback is also accepted, and jwksFile can be set instead."""
    algorithms: Annotated[NonEmptyTupleOf[Algorithm], UNIQUE_ITEMS, _max_items(3, "each once")] = (
        "RS256",
        "ES256",
        "EdDSA",
    )
    """Accepted signature algorithms."""
    tenant_claim: Annotated[
        Claim,
        KubernetesOverride("HAProxy finds it", {"maxLength": 128, "pattern": r"^[A-Za-z0-9_.:/@-]+$"}),
    ] = "tenant"
    """Top-level claim that contains the tenant's name, one of `tenants`. On Kubernetes the claim's name has
    at most 128 letters, digits and `_ . : / @ -`, so that HAProxy can read it, and a change replaces
    HAProxy's pods."""
    leeway_seconds: Annotated[int, Field(ge=0, le=600)] = 60
    """Clock difference in seconds that is tolerated when a token's times are checked."""
    refresh_seconds: Annotated[int, Field(ge=10, le=86_400)] = 300
    """Seconds between two fetches of jwksURL. The keys are fetched sooner when a token names an unknown
    key."""

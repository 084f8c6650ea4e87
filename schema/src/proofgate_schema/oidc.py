"""The settings for sign-in with an OpenID provider that the auditor's file and a manifest share."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from proofgate_schema.annotations import KubernetesOverride
from proofgate_schema.fields import TenantName, file_validator
from proofgate_schema.jwt import Claim
from proofgate_schema.section import Section
from proofgate_schema.urls import AUTHORITY, PORT, is_loopback, split_url

#: The path at which the auditor receives the provider's response.
CALLBACK_PATH = "/oidc/callback"
#: Printable ASCII without a query or fragment.
_PATH = r'(/[!-"$->@-~]*)?'
_PATTERN_REASON = "the API server checks patterns and lengths"


def _https_url(text: str, example: str) -> str:
    url = split_url(text, example)
    if url.query or url.fragment:
        raise ValueError("remove '?' or '#' and everything after it")
    if url.scheme != "https" and not is_loopback(url.hostname or ""):
        raise ValueError("use https: http is only for loopback addresses")
    return text


def _issuer(text: str) -> str:
    return _https_url(text, "https://login.example.com/realms/bank")


def _redirect_url(text: str) -> str:
    if not _https_url(text, f"https://auditor.example.com{CALLBACK_PATH}").endswith(CALLBACK_PATH):
        raise ValueError(
            f"end it with {CALLBACK_PATH}, because the auditor receives the provider's response at this path"
        )
    return text


def _scope(text: str) -> str:
    if not re.fullmatch(r"[!-~]+( [!-~]+)*", text) or len(text) > _MAX_SCOPE_LENGTH:
        raise ValueError(
            f"write words of printable ASCII with single spaces, at most {_MAX_SCOPE_LENGTH} characters"
        )
    return text


def _client_id(text: str) -> str:
    if not re.fullmatch(r"[!-~]{1,256}", text):
        raise ValueError("write 1 to 256 printable ASCII characters without spaces, as the provider shows it")
    return text


_MAX_SCOPE_LENGTH = 512


class GroupReadAccess(Section):
    """Read access of a group's members. The file and the manifest each have their own field for the group's
    name."""

    tenant: TenantName | None = None
    """Name of a tenant, as in records. The group may read only the exchanges of this tenant."""
    all: bool = False
    """True: the group may read the exchanges of all tenants. Set it instead of `tenant`."""


class Oidc(Section):
    """Sign-in with an OpenID provider: the authorization code flow with PKCE. The file and the manifest each
    have their own fields for the groups, the client's secret and certificate authorities."""

    issuer: Annotated[
        str,
        file_validator(_issuer),
        KubernetesOverride(
            "the auditor fetches it over the network, so http is not allowed",
            {"maxLength": 512, "pattern": rf"^https://{AUTHORITY}{_PATH}$"},
        ),
    ]
    """URL of the provider, exactly as `issuer` in its metadata. The metadata is fetched from
    ISSUER/.well-known/openid-configuration."""
    client_id: Annotated[
        str,
        AfterValidator(_client_id),
        KubernetesOverride(_PATTERN_REASON, {"minLength": 1, "maxLength": 256, "pattern": r"^[!-~]+$"}),
    ]
    """Id of the client that you registered with the provider."""
    redirect_uri: Annotated[
        str,
        file_validator(_redirect_url),
        KubernetesOverride(
            _PATTERN_REASON,
            {
                "maxLength": 512,
                "pattern": rf"^(https://{AUTHORITY}|http://(localhost|127\.0\.0\.1|\[::1\]){PORT}){_PATH}$",
            },
        ),
    ]
    """URL of the auditor as browsers see it, with /oidc/callback at its end, as it is registered with the
    provider. http is only for loopback addresses, such as those of a port-forward."""
    scope: Annotated[
        str,
        AfterValidator(_scope),
        KubernetesOverride(
            _PATTERN_REASON,
            {"minLength": 1, "maxLength": _MAX_SCOPE_LENGTH, "pattern": r"^[!-~]+( [!-~]+)*$"},
        ),
    ] = "openid profile email"
    """Scopes that the auditor requests from the provider."""
    groups_claim: Claim = "groups"
    """Claim of the ID token that contains the person's groups."""
    name_claim: Claim = "preferred_username"
    """Claim of the ID token that contains the name for the access log. If the token has no such claim, `sub`
    is the name."""
    session_seconds: Annotated[int, Field(ge=60, le=86_400)] = 28_800
    """Seconds that a session lasts. A person who leaves a group can read until the session ends."""

"""The section `oidc`: readers of the auditor's index sign in with an OpenID provider."""

from collections.abc import Iterator
from typing import Annotated, Any

import proofgate_schema.oidc
from proofgate_schema.fields import TupleOf, unique_by
from proofgate_schema.oidc import CALLBACK_PATH, GroupReadAccess
from pydantic import Field

from proofgate_operator.api.fields import (
    LIST_TYPE_SET,
    Cidr,
    ConfigMapKeyRef,
    SecretKeyRef,
    Section,
    cel_rules,
)

#: One line of text.
_LINE = r"^[^\x00-\x1f\x7f-\x9f]+$"
_FIELD = "spec.auditor.index.oidc"


class OidcEgress(Section):
    """Addresses to which the auditor may connect to reach the provider."""

    allow: Annotated[tuple[Cidr, ...], Field(min_length=1, max_length=32, json_schema_extra=LIST_TYPE_SET)]
    """Allowed address ranges, for example 192.0.2.0/24. The host names of the issuer and of the endpoints in
    its metadata must resolve to addresses in these ranges."""


class ReaderGroup(GroupReadAccess):
    """A group of the provider with members who may read."""

    name: Annotated[str, Field(min_length=1, max_length=256, pattern=_LINE)]
    """Name of the group, as the ID token contains it."""


_GROUP_RULES = (
    {
        "rule": "has(self.tenant) != self.all",
        "message": f"{_FIELD}.groups: set either tenant or all: true",
    },
)


class Oidc(proofgate_schema.oidc.Oidc):
    """Sign-in with an OpenID provider: the authorization code flow with PKCE. A change replaces the auditor's
    pod, which ends all sessions."""

    client_secret_ref: SecretKeyRef | None = None
    """Entry of a Secret with the client's secret: one line of printable ASCII. The secret is mounted into the
    auditor and never copied. A new value replaces the auditor's pod. Absent: a public client, which only PKCE
    protects."""
    groups: Annotated[
        TupleOf[Annotated[ReaderGroup, Field(json_schema_extra=cel_rules(*_GROUP_RULES))]],
        Field(min_length=1, max_length=16),
        unique_by("name"),
    ]
    """Groups with members who may read. If a person is a member of several groups, the first of these groups
    in this list applies."""
    egress: OidcEgress | None = None
    """Addresses of the provider in the auditor's network policy. Absent: any address, at the issuer's
    port."""
    ca_secret_ref: SecretKeyRef | None = None
    """Entry of a Secret with CA certificates (PEM) to trust instead of the system's."""
    ca_config_map_ref: ConfigMapKeyRef | None = None
    """Entry of a ConfigMap with CA certificates (PEM), instead of caSecretRef. The operator does not read
    it."""

    def secrets(self) -> Iterator[tuple[str, SecretKeyRef]]:
        """Yield each Secret entry that it needs: its field and its reference."""
        if self.client_secret_ref is not None:
            yield "clientSecretRef", self.client_secret_ref
        if self.ca_secret_ref is not None:
            yield "caSecretRef", self.ca_secret_ref


#: Rules over several fields of the section.
OIDC_RULES: tuple[dict[str, Any], ...] = (
    {
        "rule": "!has(self.caSecretRef) || !has(self.caConfigMapRef)",
        "message": f"{_FIELD}: set caSecretRef or caConfigMapRef, not both",
    },
    {
        "rule": f"self.redirectUri.endsWith('{CALLBACK_PATH}')",
        "fieldPath": ".redirectUri",
        "message": f"{_FIELD}.redirectUri must end with {CALLBACK_PATH}, because the auditor receives the "
        "provider's response at this path",
    },
)

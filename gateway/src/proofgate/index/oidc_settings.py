"""The settings for sign-in with an OpenID provider, from a JSON file that is read once at the start."""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import proofgate_schema.oidc
from proofgate_schema.fields import FilePath
from pydantic import ValidationError, field_validator, model_validator

from proofgate.config.document import Document
from proofgate.config.problems import Findings, report_schema_problems
from proofgate.index.readers import Reader

_MAX_FILE_BYTES = 1 << 20
_MAX_NAME_LENGTH = 256


class OidcSettingsError(Exception):
    """The file of settings cannot be used. The message says what to do."""

    code = "oidc_settings"


@dataclass(frozen=True)
class OidcSettings:
    """One provider, and the access of its groups."""

    issuer: str
    client_id: str
    #: None for a public client, which is protected only by PKCE.
    client_secret: str | None
    redirect_uri: str
    #: The tenant of each group, None for all tenants. The first group of the file that contains a person counts.
    groups: dict[str, str | None]
    scope: str
    groups_claim: str
    name_claim: str
    session_seconds: int
    ca_file: str | None = None

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the port over TLS."""
        return self.redirect_uri.startswith("https:")

    def reader(self, claims: dict[str, Any], until: int) -> Reader | None:
        """Returns the reader with the claims of an ID token, valid until a time (Unix microseconds); None if
        no group of the claims may read."""
        told = claims.get(self.groups_claim)
        groups = [told] if isinstance(told, str) else told
        if not isinstance(groups, list):
            return None
        name = claims.get(self.name_claim)
        subject = str(claims["sub"])[:_MAX_NAME_LENGTH]
        name = name if isinstance(name, str) and name else subject
        for group, tenant in self.groups.items():
            if group in groups:
                # The prefix distinguishes the name from names in the file of readers.
                return Reader(f"oidc:{name}"[:_MAX_NAME_LENGTH], tenant, until, subject)
        return None


class GroupAccess(proofgate_schema.oidc.GroupReadAccess):
    """The access of a group's members."""

    @model_validator(mode="after")
    def _require_tenant_or_all(self) -> GroupAccess:
        if (self.tenant is None) is not self.all:
            raise ValueError('write {"tenant": …} or {"all": true}')
        return self


class OidcFile(proofgate_schema.oidc.Oidc):
    """The schema of the file."""

    client_secret_file: FilePath | None = None
    """File with the client's secret, relative to this file. Absent: a public client."""
    ca_file: FilePath | None = None
    """CA certificates of the provider, in PEM. Absent: the system's."""
    readers: dict[str, GroupAccess]
    """Groups that may read, each with its access. If a person is in several of these groups, the first counts."""

    @field_validator("readers")
    @classmethod
    def _require_readers(cls, readers: dict[str, GroupAccess]) -> dict[str, GroupAccess]:
        if not readers:
            raise ValueError("name at least one group")
        return readers


def read_oidc_settings(path: Path) -> OidcSettings:
    """Reads a file. Raises OidcSettingsError."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
        document = json.loads(content)
    except OSError as error:
        raise OidcSettingsError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise OidcSettingsError(f"{path} is not a JSON object: {error}") from None
    if len(content) > _MAX_FILE_BYTES or not isinstance(document, dict):
        raise OidcSettingsError(f"{path} is not a JSON object of at most {_MAX_FILE_BYTES} bytes")
    try:
        written = OidcFile.model_validate(document)
    except ValidationError as error:
        findings = Findings(Document(document, {}))
        report_schema_problems(error, OidcFile, findings)
        raise OidcSettingsError("; ".join(one.describe(path) for one in findings.problems)) from None
    return OidcSettings(
        written.issuer,
        written.client_id,
        _secret(path, written.client_secret_file),
        written.redirect_uri,
        {group: reads.tenant for group, reads in written.readers.items()},
        written.scope,
        written.groups_claim,
        written.name_claim,
        written.session_seconds,
        written.ca_file,
    )


def is_confidential(url: str) -> bool:
    """Whether data sent to a URL is encrypted or stays on this host."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.scheme == "https":
        return bool(host)
    try:
        return parts.scheme == "http" and (host == "localhost" or ip_address(host).is_loopback)
    except ValueError:
        return False


def _secret(path: Path, name: str | None) -> str | None:
    if name is None:
        return None
    file = path.parent / name
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise OidcSettingsError(f"{path}: clientSecretFile {file} cannot be read: {why}") from None
    if not secret:
        raise OidcSettingsError(f"{path}: clientSecretFile {file} is empty")
    return secret

"""How readers sign in with an OpenID provider: a file of JSON, read once at the start."""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from proofgate.index.readers import Reader

_MOST_BYTES = 1 << 20
_MOST_SECONDS = 86_400
_DEFAULT_SECONDS = 8 * 3600
_KNOWN = {
    *("issuer", "clientId", "clientSecretFile", "redirectUri", "scope", "groupsClaim", "nameClaim"),
    *("readers", "sessionSeconds", "caFile"),
}


class OidcSettingsError(Exception):
    """The file cannot be used. The message says what to do."""

    code = "oidc_settings"


@dataclass(frozen=True)
class OidcSettings:
    """One provider, and which of its groups may read what."""

    issuer: str
    client_id: str
    #: None for a public client, which PKCE alone protects.
    client_secret: str | None
    redirect_uri: str
    #: The tenant of each group, None for all tenants; the first group of the file that somebody is in counts.
    groups: dict[str, str | None]
    scope: str = "openid profile email"
    groups_claim: str = "groups"
    name_claim: str = "preferred_username"
    session_seconds: int = _DEFAULT_SECONDS
    ca_file: str | None = None

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the port by TLS."""
        return self.redirect_uri.startswith("https:")

    def reader(self, claims: dict[str, Any], until: int) -> Reader | None:
        """The reader with the claims of an ID token, until a time (unix microseconds); None without a
        group that may read."""
        told = claims.get(self.groups_claim)
        groups = [told] if isinstance(told, str) else told
        if not isinstance(groups, list):
            return None
        name = claims.get(self.name_claim)
        name = name if isinstance(name, str) and name else claims["sub"]
        for group, tenant in self.groups.items():
            if group in groups:
                # A name of the file of readers has no such beginning by chance.
                return Reader(f"oidc:{name}"[:256], tenant, until)
        return None


def read(path: Path) -> OidcSettings:
    """Reads a file. Raises OidcSettingsError."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        document = json.loads(content)
    except OSError as error:
        raise OidcSettingsError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise OidcSettingsError(f"{path} is not a JSON object: {error}") from None
    if len(content) > _MOST_BYTES or not isinstance(document, dict):
        raise OidcSettingsError(f"{path} is not a JSON object of at most {_MOST_BYTES} bytes")
    if unknown := sorted(document.keys() - _KNOWN):
        raise OidcSettingsError(f"{path}: {unknown[0]} is not a known field")
    texts = {name: _text(path, document, name) for name in ("issuer", "clientId", "redirectUri")}
    for name in ("issuer", "redirectUri"):
        if not is_safe(texts[name]):
            raise OidcSettingsError(
                f"{path}: {name} is not an https URL; http is only for loopback addresses"
            )
    seconds = document.get("sessionSeconds", _DEFAULT_SECONDS)
    if not isinstance(seconds, int) or isinstance(seconds, bool) or not 60 <= seconds <= _MOST_SECONDS:
        raise OidcSettingsError(f"{path}: sessionSeconds must be a whole number from 60 to {_MOST_SECONDS}")
    others = {
        field: _text(path, document, name)
        for field, name in (
            *(("scope", "scope"), ("groups_claim", "groupsClaim")),
            *(("name_claim", "nameClaim"), ("ca_file", "caFile")),
        )
        if name in document
    }
    return OidcSettings(
        texts["issuer"],
        texts["clientId"],
        _secret(path, document),
        texts["redirectUri"],
        _groups(path, document.get("readers")),
        session_seconds=seconds,
        **others,
    )


def is_safe(url: str) -> bool:
    """Whether what is sent there is encrypted, or stays on this host."""
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


def _text(path: Path, document: dict[str, Any], name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise OidcSettingsError(f"{path}: {name} is missing or not a string")
    return value


def _secret(path: Path, document: dict[str, Any]) -> str | None:
    if "clientSecretFile" not in document:
        return None
    file = path.parent / _text(path, document, "clientSecretFile")
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise OidcSettingsError(f"{path}: clientSecretFile {file} cannot be read: {error}") from None
    if not secret:
        raise OidcSettingsError(f"{path}: clientSecretFile {file} is empty")
    return secret


def _groups(path: Path, readers: Any) -> dict[str, str | None]:
    wrong = OidcSettingsError(
        f'{path}: readers must be an object of at least one group, each {{"tenant": …}} or {{"all": true}}'
    )
    if not isinstance(readers, dict) or not readers:
        raise wrong
    found: dict[str, str | None] = {}
    for group, of in readers.items():
        if of == {"all": True} and of["all"] is True:
            found[group] = None
        elif (
            isinstance(of, dict)
            and of.keys() == {"tenant"}
            and isinstance(of["tenant"], str)
            and of["tenant"]
        ):
            found[group] = of["tenant"]
        else:
            raise wrong
    return found

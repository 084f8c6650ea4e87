"""Credentials of providers in files. An unusable credential disables only its provider."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar
from urllib.parse import urlsplit

from proofgate_schema.static_fields import header_value_error
from proofgate_schema.urls import is_loopback
from pydantic import SecretStr

from proofgate.config.auth import Auth, AuthType
from proofgate.config.checked_config import AwsCredentials
from proofgate.config.document import FieldPath
from proofgate.config.files import ReferencedFiles
from proofgate.config.problems import Findings
from proofgate.config.settings import Settings
from proofgate.forward_proxy import ForwardProxy, NoProxyRule

T = TypeVar("T")


def provider_keys(
    settings: Settings, files: ReferencedFiles, findings: Findings
) -> dict[str, SecretStr | None]:
    """The keys of providers that need one; None if the key cannot be used.

    An unusable key is no reason to refuse a configuration: its other changes, such as the removal of a leaked
    key, must not wait for a provider.
    """

    def read(auth: Auth, path: FieldPath) -> SecretStr:
        return SecretStr(files.read_secret((*path, "apiKeyFile"), auth.api_key_file or ""))

    return _read_by_auth_type("APIKey", settings, findings, read)


def aws_credentials(
    settings: Settings, files: ReferencedFiles, findings: Findings
) -> dict[str, AwsCredentials | None]:
    """Access keys of AWS; None if a part of one cannot be used."""

    def read(auth: Auth, path: FieldPath) -> AwsCredentials:
        token = auth.session_token_file
        return AwsCredentials(
            SecretStr(files.read_secret((*path, "accessKeyIdFile"), auth.access_key_id_file or "")),
            SecretStr(files.read_secret((*path, "secretAccessKeyFile"), auth.secret_access_key_file or "")),
            None if token is None else SecretStr(files.read_secret((*path, "sessionTokenFile"), token)),
        )

    return _read_by_auth_type("AWSStaticKeys", settings, findings, read)


def service_accounts(
    settings: Settings, files: ReferencedFiles, findings: Findings
) -> dict[str, SecretStr | None]:
    """The keys of Google's service accounts; None if a key cannot be used."""

    def read(auth: Auth, path: FieldPath) -> SecretStr:
        field, name = (*path, "serviceAccountKeyFile"), auth.service_account_key_file or ""
        known = len(findings.problems)
        text = files.read_text(field, name)
        if len(findings.problems) == known and (wrong := _service_account_key_error(text)):
            findings.report("config_service_account", field, f"{name} {wrong}")
        return SecretStr(text)

    return _read_by_auth_type("GCPServiceAccountKey", settings, findings, read)


def provider_headers(
    settings: Settings, files: ReferencedFiles, findings: Findings
) -> dict[str, tuple[SecretStr, ...] | None]:
    """The values of header fields of providers that have some; None if a secret value cannot be used."""
    found: dict[str, tuple[SecretStr, ...] | None] = {}
    for position, provider in enumerate(settings.providers):
        known, values = len(findings.problems), []
        for place, header in enumerate(provider.headers):
            path: FieldPath = ("providers", position, "headers", place, "valueFile")
            if header.value_file is None:
                values.append(SecretStr(header.value or ""))
                continue
            before = len(findings.problems)
            text = files.read_text(path, header.value_file).strip()
            fault = header_value_error(text)
            if len(findings.problems) == before and fault:
                findings.report("config_bad_secret", path, f"{header.value_file}: {fault}")
            values.append(SecretStr(text))
        missing = findings.downgrade_to_warnings(known, f"requests for models of {provider.name} are refused")
        if provider.headers:
            found[provider.name] = None if missing else tuple(values)
    return found


def forward_proxy(settings: Settings, files: ReferencedFiles, findings: Findings) -> ForwardProxy | None:
    """The egress proxy; None without one. Unusable credentials disable only the connections through the
    proxy."""
    proxy = settings.egress.proxy if settings.egress else None
    if proxy is None:
        return None
    path: FieldPath = ("egress", "proxy")
    url = urlsplit(proxy.url)
    exempt = tuple(NoProxyRule.parse(entry) for entry in proxy.no_proxy)
    found = ForwardProxy(url.hostname or "", url.port or 80, exempt)
    if proxy.username_file is None or proxy.password_file is None:
        return found
    known = len(findings.problems)
    user = files.read_secret((*path, "usernameFile"), proxy.username_file)
    password = files.read_secret((*path, "passwordFile"), proxy.password_file)
    if ":" in user:
        # RFC 7617, section 2: the first colon ends the user name.
        message = (
            f"{proxy.username_file} contains a user name with a colon, which Basic authentication does "
            "not allow"
        )
        findings.report("config_bad_secret", (*path, "usernameFile"), message)
    if findings.downgrade_to_warnings(known, "requests that need the egress proxy are not sent"):
        return replace(found, is_usable=False)
    shown = base64.b64encode(f"{user}:{password}".encode()).decode()
    return replace(found, authorization=SecretStr(f"Basic {shown}"))


def _read_by_auth_type(
    kind: AuthType, settings: Settings, findings: Findings, read: Callable[[Auth, FieldPath], T]
) -> dict[str, T | None]:
    """The credentials of each provider with this type of `auth`; None if a part of them cannot be used."""
    found: dict[str, T | None] = {}
    for position, provider in enumerate(settings.providers):
        if provider.auth is None or provider.auth.type != kind:
            continue
        known = len(findings.problems)
        value = read(provider.auth, ("providers", position, "auth"))
        missing = findings.downgrade_to_warnings(known, f"requests for models of {provider.name} are refused")
        found[provider.name] = None if missing else value
    return found


def _service_account_key_error(text: str) -> str | None:
    """What is wrong with a key file, without any of its content; None if nothing is."""
    try:
        key = json.loads(text)
    except (ValueError, RecursionError):
        return "is not JSON: expected a service account key file as Google Cloud issues it"
    fields = ("client_email", "private_key", "token_uri")
    if not isinstance(key, dict) or not all(isinstance(key.get(name), str) for name in fields):
        return f"is not a service account key: it lacks {', '.join(fields)}"
    try:
        url = urlsplit(key["token_uri"])
        host = url.hostname or ""
    except ValueError:
        return "has a token_uri that is not a URL"
    if not host or (url.scheme != "https" and not (url.scheme == "http" and is_loopback(host))):
        return "has a token_uri without https: anyone on the network could read the tokens"
    return None

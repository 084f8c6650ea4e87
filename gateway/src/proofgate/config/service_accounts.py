"""The keys of Google's service accounts, for which access tokens are fetched."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from pydantic import SecretStr

from proofgate.config.document import FieldPath
from proofgate.config.fields import is_loopback
from proofgate.config.files import NamedFiles
from proofgate.config.problems import Findings
from proofgate.config.settings import Settings


def service_accounts(
    settings: Settings, files: NamedFiles, findings: Findings
) -> dict[str, SecretStr | None]:
    """The key files of providers that name one; None where there is none that could be used, as with keys."""
    found: dict[str, SecretStr | None] = {}
    for position, provider in enumerate(settings.providers):
        if provider.service_account_file is None:
            continue
        path: FieldPath = ("providers", position, "serviceAccountFile")
        known = len(findings.problems)
        text = files.text(path, provider.service_account_file)
        if len(findings.problems) == known and (wrong := _fault(text)):
            findings.report("config_service_account", path, f"{provider.service_account_file} {wrong}")
        missing = findings.tolerate_since(known, f"requests for models of {provider.name} are refused")
        found[provider.name] = None if missing else SecretStr(text)
    return found


def _fault(text: str) -> str | None:
    """What is wrong with a key file, without a word of it."""
    try:
        key = json.loads(text)
    except (ValueError, RecursionError):
        return "is not JSON: it is the key file of a service account, as Google Cloud gives it"
    fields = ("client_email", "private_key", "token_uri")
    if not isinstance(key, dict) or not all(isinstance(key.get(name), str) for name in fields):
        return f"is no key of a service account: it has no {', '.join(fields)}"
    try:
        url = urlsplit(key["token_uri"])
        host = url.hostname or ""
    except ValueError:
        return "has a token_uri that is no URL"
    if not host or (url.scheme != "https" and not (url.scheme == "http" and is_loopback(host))):
        return "has a token_uri without https: whoever listens would have the tokens"
    return None

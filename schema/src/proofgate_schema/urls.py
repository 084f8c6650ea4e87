"""URL types: their format, and the messages about invalid URLs."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from proofgate_schema.annotations import KubernetesOverride
from proofgate_schema.fields import file_validator

LABEL = r"[A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?"
#: An optional port from 1 to 65535.
PORT = r"(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?"
#: A host of a URL and its port. The operator's `plan.addresses` checks what a pattern cannot.
AUTHORITY = rf"({LABEL}(\.{LABEL})*\.?|\[[0-9A-Fa-f:.]+\]){PORT}"
#: The path is printable ASCII without a query or fragment: a request's own path is appended.
BASE_URL_PATTERN = rf'^https?://{AUTHORITY}(/[!-"$->@-~]*)?$'
WEB_ORIGIN_PATTERN = rf"^(\*|https?://([a-z0-9][-a-z0-9._]*|\[[0-9a-f:.]+\]){PORT})$"
#: The rest of the URL is printable ASCII without a fragment.
KEY_SET_URL_PATTERN = rf'^https://{AUTHORITY}(/[!-"$-~]*)?$'
HOOK_URL_PATTERN = rf'^https?://{AUTHORITY}(/[!-"$-~]*)?$'
_PATTERN_REASON = "the API server checks patterns and lengths"


def is_loopback(host: str) -> bool:
    """Return whether a URL's host is this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def split_url(text: str, example: str) -> SplitResult:
    """Return the parts of an http(s) URL without credentials. Raises ValueError."""
    try:
        url = urlsplit(text)
        well_formed = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        well_formed = False
    if not well_formed or not re.fullmatch(r"[!-~]+", text):
        raise ValueError(f"write an http or https URL, for example {example}")
    if url.username is not None or url.password is not None:
        raise ValueError("remove the user name and password from the URL: a key belongs in auth")
    return url


def _base_url(text: str) -> str:
    url = split_url(text, "https://api.openai.com/v1")
    if url.query or url.fragment:
        raise ValueError(
            "remove '?' or '#' and everything after it: the path of a request is appended to this URL"
        )
    return text.rstrip("/")


def _web_origin(text: str) -> str:
    if text == "*":
        return text
    url = split_url(text, "https://app.example.com")
    default_port = {"http": 80, "https": 443}[url.scheme]
    if text != f"{url.scheme}://{url.netloc}" or text != text.lower() or url.port == default_port:
        # Compared byte for byte with what browsers send (RFC 6454, section 6.2).
        raise ValueError(
            "write the origin as browsers send it: lower case, no path, no final slash, no default port"
        )
    return text


def _key_set_url(text: str) -> str:
    url = split_url(text, "https://login.example.com/.well-known/jwks.json")
    if url.fragment:
        raise ValueError("remove '#' and everything after it: this part of a URL is never sent")
    if url.scheme != "https" and not is_loopback(url.hostname or ""):
        raise ValueError(
            "use https: over http, an impostor could publish keys and sign tokens for every tenant"
        )
    return text


def _hook_url(text: str) -> str:
    url = split_url(text, "https://guardrail.example.com/evaluate")
    if url.fragment:
        raise ValueError("remove '#' and everything after it: this part of a URL is never sent")
    return text


BaseURL = Annotated[
    str,
    file_validator(_base_url),
    KubernetesOverride(_PATTERN_REASON, {"maxLength": 512, "pattern": BASE_URL_PATTERN}),
]
WebOrigin = Annotated[
    str,
    file_validator(_web_origin),
    KubernetesOverride(_PATTERN_REASON, {"minLength": 1, "maxLength": 256, "pattern": WEB_ORIGIN_PATTERN}),
]
KeySetURL = Annotated[
    str,
    file_validator(_key_set_url),
    KubernetesOverride(
        "workers fetch it over the network, so http is not allowed",
        {"maxLength": 512, "pattern": KEY_SET_URL_PATTERN},
    ),
]
HookURL = Annotated[
    str,
    file_validator(_hook_url),
    KubernetesOverride(_PATTERN_REASON, {"minLength": 1, "maxLength": 512, "pattern": HOOK_URL_PATTERN}),
]

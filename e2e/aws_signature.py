"""Verification of Signature Version 4: whether a request is signed with given credentials.

Source: "Signature Version 4 signing process" of the AWS General Reference. What botocore signs with the same
credentials is in worker/bedrock_goldens.json.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request,"
    r" SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)


@dataclass(frozen=True)
class Credentials:
    """The credentials of accepted requests."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None
    region: str


def fault(credentials: Credentials, method: str, path: str, headers: Mapping[str, str], body: bytes) -> str | None:
    """The fault of a signature, or None. `path` as on the wire, names of `headers` in lower case."""
    found = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    if found is None:
        return "there is no signature"
    key_id, day, region, service, names, signature = found.groups()
    date = headers.get("x-amz-date", "")
    if (key_id, region, service) != (credentials.access_key_id, credentials.region, "bedrock"):
        return "it is for another key, region or service"
    if not re.fullmatch(rf"{day}T\d{{6}}Z", date):
        return "its date is not that of x-amz-date"
    signed = names.split(";")
    if signed != sorted(signed) or not {"host", "x-amz-date"} <= set(signed):
        return "host or x-amz-date is not signed"
    if credentials.session_token != headers.get("x-amz-security-token"):
        return "it has another session token"
    if credentials.session_token is not None and "x-amz-security-token" not in signed:
        return "the session token is not signed"
    lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in signed)
    # Every service but S3 encodes the path once more.
    canonical = f"{method}\n{quote(path, safe='/-._~')}\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{day}/{region}/{service}/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret_access_key}".encode()
    for part in (day, region, service, "aws4_request", to_sign):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return None if hmac.compare_digest(key.hex(), signature) else "the signature is another"

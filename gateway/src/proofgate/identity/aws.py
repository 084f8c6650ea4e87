"""Temporary AWS credentials: for a role by web identity (IRSA), or from the agent of EKS Pod Identity.

Sources: "AssumeRoleWithWebIdentity" of the AWS STS API Reference; "Container credential provider" of the AWS
SDKs and Tools Reference Guide.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from proofgate.config.auth import AGENT_ADDRESSES, Auth
from proofgate.identity.endpoint import (
    EndpointResponse,
    post_form,
    read_projected_token,
    require_setting,
    require_text,
    safe_code,
    send_request,
)
from proofgate.identity.issued_credentials import AwsSession, IdentityError
from proofgate.timed_request import HttpResponse

AGENT_URL = "http://169.254.170.23/v1/credentials"
#: The host suffixes of AWS partitions that differ from the standard one, by prefix of the region.
_SUFFIXES = {
    "cn-": "amazonaws.com.cn",
    "eusc-": "amazonaws.eu",
    "us-iso-": "c2s.ic.gov",
    "us-isob-": "sc2s.sgov.gov",
    "eu-isoe-": "cloud.adc-e.uk",
    "us-isof-": "csp.hci.ic.gov",
}
_STS_NAMESPACE = "{https://sts.amazonaws.com/doc/2011-06-15/}"


def sts_url(region: str) -> str:
    """The regional endpoint of STS. Unlike the global endpoint, it does not depend on another region."""
    suffixes = (suffix for begin, suffix in _SUFFIXES.items() if region.startswith(begin))
    return f"https://sts.{region}.{next(suffixes, 'amazonaws.com')}"


def session_name() -> str:
    """The session name, by which CloudTrail distinguishes workers: the name of the pod."""
    own = os.environ.get("AWS_ROLE_SESSION_NAME") or f"proofgate-{socket.gethostname()}"
    return re.sub(r"[^A-Za-z0-9_+=,.@-]", "-", own)[:64].ljust(2, "-")


@dataclass(frozen=True)
class WebIdentity:
    """A source of credentials for a role that is assumed with the token of the worker's ServiceAccount."""

    auth: Auth
    region: str

    def fetch(self) -> AwsSession:
        """New credentials. Blocks; raises IdentityError."""
        fields = {
            "Action": "AssumeRoleWithWebIdentity",
            "Version": "2011-06-15",
            "RoleArn": require_setting(self.auth.role_arn, "roleARN", "AWS_ROLE_ARN"),
            "RoleSessionName": session_name(),
            "WebIdentityToken": read_projected_token(self.auth.token_file, "AWS_WEB_IDENTITY_TOKEN_FILE"),
        }
        url = self.auth.sts_url or sts_url(self.region)
        reply = post_form(url, fields, lambda answer: safe_code(_text(_xml(answer.body), "Error/Code")))
        found = _xml(reply.body)
        result = "AssumeRoleWithWebIdentityResult/Credentials"
        names = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
        return _session(reply, {name: _text(found, f"{result}/{name}") for name in names}, "SessionToken")


@dataclass(frozen=True)
class PodIdentity:
    """A source of credentials for the role that is associated with the worker's ServiceAccount in EKS."""

    auth: Auth

    def fetch(self) -> AwsSession:
        """New credentials. Blocks; raises IdentityError."""
        token = read_projected_token(self.auth.token_file, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        url = self.auth.credentials_url or os.environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI") or AGENT_URL
        headers = {"Authorization": token, "Accept": "application/json"}
        reply = send_request("GET", url, headers, None, _agent_error_code, AGENT_ADDRESSES)
        return _session(reply, reply.document(), "Token")


def _session(reply: EndpointResponse, document: Mapping[str, Any], token: str) -> AwsSession:
    return AwsSession(
        require_text(document, "AccessKeyId"),
        require_text(document, "SecretAccessKey"),
        require_text(document, token),
        reply.seconds_until(document.get("Expiration")),
    )


def _agent_error_code(answer: HttpResponse) -> str | None:
    # The agent's response has the name of an exception of the EKS API, followed by a text.
    found = re.search(rb"\b([A-Z][A-Za-z]{2,60}Exception)\b", answer.body)
    return safe_code(found[1].decode()) if found else None


def _xml(body: bytes) -> ElementTree.Element:
    # No response of STS contains declarations. XML with entity declarations could expand without limit.
    if b"<!" not in body:
        with contextlib.suppress(ElementTree.ParseError, ValueError, LookupError):
            return ElementTree.fromstring(body)  # noqa: S314 - see above
    raise IdentityError("bad_answer", "the response is not XML of STS")


def _text(found: ElementTree.Element, path: str) -> str | None:
    below = "/".join(f"{_STS_NAMESPACE}{name}" for name in path.split("/"))
    return found.findtext(below) or found.findtext(path)

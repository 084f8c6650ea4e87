"""Access tokens of Google Cloud, for a service account's key, a federated identity, or the machine's own
identity.

With the key of a service account, Google's library signs an assertion, and the endpoint exchanges it for a
token (RFC 7523, section 2.1). A federated identity exchanges its token (RFC 8693), and may impersonate a
service account with the result. The metadata server of GKE knows the identity of the pod.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from proofgate.config.auth import Auth
from proofgate.identity.endpoint import (
    oauth_code,
    post_form,
    read_projected_token,
    require_text,
    send_request,
)
from proofgate.identity.issued_credentials import AccessToken, IdentityError

if TYPE_CHECKING:
    from google.auth.credentials import Credentials
    from pydantic import SecretStr

#: OAuth scope that Vertex AI requires.
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_IAM_SCOPE = "https://www.googleapis.com/auth/iam"
STS_URL = "https://sts.googleapis.com/v1/token"
IAM_CREDENTIALS_URL = "https://iamcredentials.googleapis.com"
#: The metadata server by address, because a name could resolve to another server.
METADATA_HOST = "169.254.169.254"
LIFETIME_SECONDS = 3600
_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:"  # noqa: S105 - the begin of a name
_METADATA_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"


@dataclass(frozen=True)
class FederatedIdentity:
    """A source of tokens for a principal of a workload identity pool, which may impersonate a service
    account."""

    auth: Auth

    def fetch(self) -> AccessToken:
        """A new token. Blocks; raises IdentityError."""
        fields = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "audience": self.auth.audience or "",
            # Impersonation needs no other scope.
            "scope": SCOPE if self.auth.service_account is None else _IAM_SCOPE,
            "requested_token_type": f"{_TOKEN_TYPE}access_token",
            "subject_token_type": f"{_TOKEN_TYPE}jwt",
            "subject_token": read_projected_token(self.auth.token_file, None),
        }
        reply = post_form(self.auth.sts_url or STS_URL, fields, oauth_code)
        document = reply.document()
        token = AccessToken(
            require_text(document, "access_token"), reply.seconds_left(document.get("expires_in"))
        )
        if self.auth.service_account is None:
            return token
        return self._impersonate(self.auth.service_account, token.text)

    def _impersonate(self, account: str, token: str) -> AccessToken:
        base = self.auth.iam_credentials_url or IAM_CREDENTIALS_URL
        url = f"{base}/v1/projects/-/serviceAccounts/{account}:generateAccessToken"
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        body = {"scope": [SCOPE], "lifetime": f"{LIFETIME_SECONDS}s"}
        reply = send_request("POST", url, headers, json.dumps(body).encode(), oauth_code)
        document = reply.document()
        return AccessToken(
            require_text(document, "accessToken"), reply.seconds_until(document.get("expireTime"))
        )


@dataclass(frozen=True)
class MetadataServer:
    """A source of tokens for the identity of the machine; in GKE, for the pod's ServiceAccount."""

    def fetch(self) -> AccessToken:
        """Returns a token, which may be the same as before. Blocks; raises IdentityError."""
        host = os.environ.get("GCE_METADATA_HOST") or METADATA_HOST
        headers = {"Metadata-Flavor": "Google"}
        also = frozenset({METADATA_HOST})
        reply = send_request("GET", f"http://{host}{_METADATA_PATH}", headers, None, oauth_code, also)
        document = reply.document()
        return AccessToken(
            require_text(document, "access_token"), reply.seconds_left(document.get("expires_in"))
        )


@dataclass(frozen=True)
class ServiceAccountKey:
    """A source of tokens for the JSON key of a service account."""

    key: SecretStr = field(repr=False)

    def fetch(self) -> AccessToken:
        """A new token. Blocks; raises IdentityError."""
        # Imported only if there is such a provider, because these modules use much memory.
        from google.auth import exceptions

        credentials = self._credentials()
        try:
            credentials.refresh(_send_bounded_request)  # type: ignore[no-untyped-call]
        except (exceptions.GoogleAuthError, ValueError, TypeError, KeyError):
            raise IdentityError("bad_answer", "the response is not an access token") from None
        if not isinstance(credentials.token, str) or credentials.expiry is None:
            raise IdentityError(
                "bad_answer", "the response has no access token, or its access token never expires"
            )
        left = credentials.expiry.replace(tzinfo=UTC) - datetime.now(UTC)
        return AccessToken(credentials.token, max(left.total_seconds(), 0.0))

    def _credentials(self) -> Credentials:
        from google.oauth2 import service_account

        # Other fields of the file, such as another universe, are ignored.
        known = ("client_email", "token_uri", "private_key", "private_key_id")
        info = json.loads(self.key.get_secret_value())
        try:
            make: Any = service_account.Credentials.from_service_account_info
            found: Credentials = make({name: info[name] for name in known if name in info}, scopes=[SCOPE])
        except (ValueError, TypeError):
            raise IdentityError("bad_key", "the service account's private key is not valid") from None
        return found


@dataclass(frozen=True)
class _Response:
    """A response in the form that Google's library expects."""

    status: int
    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def _send_bounded_request(
    url: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    **_: object,
) -> _Response:
    """Sends a request of Google's library with this package's limits. Raises IdentityError, also for a
    refusal."""
    return _Response(HTTPStatus.OK, send_request(method, url, headers or {}, body, oauth_code).body)

"""Exchanges the token of the worker's ServiceAccount for an access token of Entra ID (workload identity
federation).

Source: "Microsoft identity platform and the OAuth 2.0 client credentials flow", third case: a token request
with a federated credential. The variables are those that the webhook of Azure Workload Identity sets.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import quote

from proofgate.config.auth import Auth
from proofgate.identity.endpoint import (
    oauth_code,
    post_form,
    read_projected_token,
    require_setting,
    require_text,
)
from proofgate.identity.issued_credentials import AccessToken
from proofgate.timed_request import HttpResponse

AUTHORITY = "https://login.microsoftonline.com"
SCOPE = "https://cognitiveservices.azure.com/.default"
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@dataclass(frozen=True)
class EntraWorkloadIdentity:
    """An application or managed identity with a federated credential for the worker's ServiceAccount."""

    auth: Auth

    def fetch(self) -> AccessToken:
        """A new token. Blocks; raises IdentityError."""
        tenant = require_setting(self.auth.tenant_id, "tenantID", "AZURE_TENANT_ID")
        authority = self.auth.authority_url or os.environ.get("AZURE_AUTHORITY_HOST") or AUTHORITY
        fields = {
            "grant_type": "client_credentials",
            "client_id": require_setting(self.auth.client_id, "clientID", "AZURE_CLIENT_ID"),
            "scope": self.auth.scope or SCOPE,
            "client_assertion_type": _ASSERTION,
            "client_assertion": read_projected_token(self.auth.token_file, "AZURE_FEDERATED_TOKEN_FILE"),
        }
        url = f"{authority.rstrip('/')}/{quote(tenant, safe='')}/oauth2/v2.0/token"
        reply = post_form(url, fields, _code)
        document = reply.document()
        return AccessToken(
            require_text(document, "access_token"), reply.seconds_left(document.get("expires_in"))
        )


def _code(answer: HttpResponse) -> str | None:
    """OAuth's code, followed by the number that Microsoft documents ("AADSTS error codes"); None without a
    code."""
    code = oauth_code(answer)
    found = re.search(rb'"error_codes": ?\[([0-9]{5,7})\b', answer.body)
    return f"{code}, AADSTS{found[1].decode()}" if code and found else code

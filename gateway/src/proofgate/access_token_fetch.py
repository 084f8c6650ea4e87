"""Fetching an access token of Google's, with the library of Google's own.

With the key of a service account a token is what its endpoint gives for a signed assertion (RFC 7523, section
2.1); without one, what the metadata server of the machine has, which in GKE is that of the workload's
identity.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.auth.credentials import Credentials
    from pydantic import SecretStr

#: What Vertex AI wants to be allowed.
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
#: For one answer. The library asks again where that may help, a few times.
TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True)
class AccessToken:
    """A token, and for how many seconds it is one. Its representation does not show it."""

    text: str = field(repr=False)
    lifetime_seconds: float


class TokenError(Exception):
    """No token came. Says why, without a word of the answer or of the key."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def fetch_access_token(account: SecretStr | None) -> AccessToken:
    """A token for a service account's key, or without one for the machine's identity. Blocks; raises
    TokenError."""
    # Imported where there is such a provider alone: they cost memory.
    from google.auth import exceptions

    credentials = _of_the_machine() if account is None else _of_account(account)
    try:
        credentials.refresh(_transport())  # type: ignore[no-untyped-call]
    except exceptions.TransportError:
        raise TokenError("unreachable", "who gives access tokens is not reachable") from None
    except exceptions.RefreshError as error:
        if isinstance(error.__cause__, exceptions.TransportError):
            raise TokenError("unreachable", "who gives access tokens is not reachable") from None
        raise TokenError("refused", "no access token is given for this identity") from None
    except (exceptions.GoogleAuthError, ValueError, TypeError, KeyError):
        raise TokenError("bad_answer", "the answer is no access token") from None
    if not isinstance(credentials.token, str) or credentials.expiry is None:
        raise TokenError("bad_answer", "the answer has no access token, or one that never ends")
    left = credentials.expiry.replace(tzinfo=UTC) - datetime.now(UTC)
    return AccessToken(credentials.token, max(left.total_seconds(), 0.0))


def _of_account(account: SecretStr) -> Credentials:
    from google.oauth2 import service_account

    # What else a file says, such as another universe, is not followed.
    known = ("client_email", "token_uri", "private_key", "private_key_id")
    info = json.loads(account.get_secret_value())
    try:
        make: Any = service_account.Credentials.from_service_account_info
        found: Credentials = make({name: info[name] for name in known if name in info}, scopes=[SCOPE])
    except (ValueError, TypeError):
        raise TokenError("bad_key", "the service account's private key is not one") from None
    return found


def _of_the_machine() -> Credentials:
    from google.auth import compute_engine

    return compute_engine.Credentials(scopes=[SCOPE])  # type: ignore[no-untyped-call]


def _transport() -> Any:
    """Sends requests where they are meant to go: no proxy, no netrc file and no redirect has a say."""
    import requests
    from google.auth.transport.requests import Request

    session = requests.Session()
    session.trust_env = False
    session.max_redirects = 0
    send = Request(session)

    def within(*args: Any, **options: Any) -> Any:
        return send(*args, **{**options, "timeout": TIMEOUT_SECONDS})

    return within

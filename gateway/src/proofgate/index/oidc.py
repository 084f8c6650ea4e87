"""Sign-in with an OpenID provider: the authorization code flow with PKCE (OpenID Connect Core 1.0, RFC 7636).

Authlib implements the protocol. This module has the state of a sign-in, which is in a signed cookie of the
browser, and the checks of the ID token: signature, issuer, audience, nonce and time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import requests
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from proofgate.index.oidc_settings import OidcSettings, is_confidential
from proofgate.index.readers import Reader

if TYPE_CHECKING:
    from joserfc._keys import KeySetSerialization

#: Maximum seconds from the start of a sign-in to the provider's response.
SIGN_IN_TIMEOUT_SECONDS = 600
#: Maximum seconds of one request to the provider.
_REQUEST_TIMEOUT_SECONDS = 10.0
_LEEWAY_SECONDS = 60
#: Seconds for which the provider's metadata and keys are used.
_METADATA_SECONDS = 3600.0
#: Minimum seconds between two requests for keys because of an unknown key.
_MIN_KEY_REFRESH_SECONDS = 60.0
#: Accepted algorithms: only signatures with a key of the provider, so a client secret cannot verify an ID
#: token.
_ALGORITHMS = ["RS256", "PS256", "ES256", "ES384", "EdDSA", "Ed25519"]
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class SignInError(Exception):
    """A sign-in failed. `code` is stable, and the message contains no secret."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class _PendingSignIn:
    state: str
    nonce: str
    verifier: str
    until: float


class OidcClient:
    """A client of the OpenID provider, which signs readers in. Thread-safe."""

    def __init__(self, settings: OidcSettings) -> None:
        self.settings = settings
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._metadata: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None

    def start_sign_in(self) -> tuple[str, str]:
        """Returns the URL for the browser's redirect, and the content of its cookie. Raises SignInError."""
        state, nonce, verifier = (secrets.token_urlsafe(48) for _ in range(3))
        begun = _PendingSignIn(state, nonce, verifier, time.time() + SIGN_IN_TIMEOUT_SECONDS)
        with self._session() as session:
            url, _ = session.create_authorization_url(
                self._provider_metadata()["authorization_endpoint"],
                state=begun.state,
                code_verifier=begun.verifier,
                nonce=begun.nonce,
            )
        return url, self._encode_cookie(begun)

    def finish_sign_in(self, asked: dict[str, str], cookie: str) -> Reader:
        """Returns the reader from the query of the provider's redirect and the cookie. Raises SignInError."""
        begun = self._decode_cookie(cookie)
        if not hmac.compare_digest(begun.state.encode(), asked.get("state", "").encode()):
            raise SignInError(
                "state_differs", "the response does not belong to the sign-in that this browser started"
            )
        if "iss" in asked and asked["iss"] != self.settings.issuer:
            raise SignInError("issuer_differs", "the response comes from another provider (RFC 9207)")
        if "error" in asked or not asked.get("code"):
            raise SignInError("provider_refused", "the provider did not sign you in")
        claims = self._fetch_claims(asked["code"], begun)
        reader = self.settings.reader(claims, (int(time.time()) + self.settings.session_seconds) * 1_000_000)
        if reader is None:
            raise SignInError("no_reader_group", "none of your groups may read here")
        return reader

    def _fetch_claims(self, code: str, begun: _PendingSignIn) -> dict[str, Any]:
        provider = self._provider_metadata()
        with self._session() as session:
            try:
                token = session.fetch_token(
                    provider["token_endpoint"],
                    code=code,
                    code_verifier=begun.verifier,
                    timeout=_REQUEST_TIMEOUT_SECONDS,
                )
                id_token = token["id_token"]
                access_token = token.get("access_token")
            except (OAuthError, requests.RequestException, ValueError, KeyError, TypeError):
                raise SignInError(
                    "provider_refused", "the provider returned no ID token for the code"
                ) from None
        try:
            decoded = self._decode_id_token(id_token)
            claims = CodeIDToken(
                decoded.claims,
                decoded.header,
                options={
                    "iss": {"essential": True, "value": self.settings.issuer},
                    "aud": {"essential": True, "value": self.settings.client_id},
                    "nonce": {"essential": True, "value": begun.nonce},
                },
                params={
                    "nonce": begun.nonce,
                    "client_id": self.settings.client_id,
                    "access_token": access_token,
                },
            )
            claims.validate(leeway=_LEEWAY_SECONDS)
        except (JoseError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise SignInError(
                "id_token_invalid", f"the provider's ID token is not valid: {type(error).__name__}"
            ) from None
        return dict(claims)

    def _decode_id_token(self, id_token: str) -> jwt.Token:
        """Verifies the signature. If the key is unknown, fetches newer keys once."""
        try:
            return jwt.decode(id_token, self._key_set(), algorithms=_ALGORITHMS)
        except (JoseError, ValueError):
            fetched = self._keys
            if fetched is not None and time.monotonic() - fetched[0] < _MIN_KEY_REFRESH_SECONDS:
                raise
            return jwt.decode(id_token, self._key_set(newer=True), algorithms=_ALGORITHMS)

    def _key_set(self, newer: bool = False) -> KeySet:
        with self._lock:
            kept = self._keys
        if kept is not None and not newer and time.monotonic() - kept[0] < _METADATA_SECONDS:
            return kept[1]
        keys = KeySet.import_key_set(
            cast("KeySetSerialization", self._get(self._provider_metadata()["jwks_uri"]))
        )
        with self._lock:
            self._keys = (time.monotonic(), keys)
        return keys

    def _provider_metadata(self) -> dict[str, Any]:
        with self._lock:
            kept = self._metadata
        if kept is not None and time.monotonic() - kept[0] < _METADATA_SECONDS:
            return kept[1]
        found = self._get(self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration")
        if found.get("issuer") != self.settings.issuer:
            raise SignInError("provider_unusable", "the provider's metadata names another issuer")
        if not all(isinstance(found.get(name), str) and is_confidential(found[name]) for name in _ENDPOINTS):
            raise SignInError(
                "provider_unusable", "the provider's metadata lacks an https URL for one of its endpoints"
            )
        with self._lock:
            self._metadata = (time.monotonic(), found)
        return found

    def _get(self, url: str) -> dict[str, Any]:
        with self._session() as session:
            try:
                answer = session.request(
                    "GET", url, withhold_token=True, timeout=_REQUEST_TIMEOUT_SECONDS, allow_redirects=False
                )
                if answer.status_code != requests.codes.ok:
                    raise SignInError(
                        "provider_unusable", f"the provider responded with status {answer.status_code}"
                    )
                found = answer.json()
            except (requests.RequestException, ValueError):
                raise SignInError("provider_unusable", "the provider cannot be reached now") from None
        if not isinstance(found, dict):
            raise SignInError("provider_unusable", "the provider's metadata is not a JSON object")
        return found

    def _session(self) -> Any:
        """Creates a session of Authlib, which has no type annotations."""
        settings = self.settings
        session = OAuth2Session(
            settings.client_id,
            settings.client_secret,
            token_endpoint_auth_method="client_secret_basic" if settings.client_secret else "none",
            scope=settings.scope,
            redirect_uri=settings.redirect_uri,
            code_challenge_method="S256",
        )
        # Ignore proxies and netrc files of the environment.
        session.trust_env = False
        session.max_redirects = 0
        if settings.ca_file is not None:
            session.verify = settings.ca_file
        return session

    def _encode_cookie(self, begun: _PendingSignIn) -> str:
        content = base64.urlsafe_b64encode(json.dumps(vars(begun)).encode())
        return f"{content.decode()}.{self._signature(content)}"

    def _decode_cookie(self, cookie: str) -> _PendingSignIn:
        content, _, signature = cookie.partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(content.encode()).encode()):
            raise SignInError("state_differs", "this browser has no sign-in in progress: start again")
        begun = _PendingSignIn(**json.loads(base64.urlsafe_b64decode(content)))
        if time.time() > begun.until:
            raise SignInError("sign_in_expired", "the sign-in took too long: start again")
        return begun

    def _signature(self, content: bytes) -> str:
        return hmac.new(self._key, content, hashlib.sha256).hexdigest()

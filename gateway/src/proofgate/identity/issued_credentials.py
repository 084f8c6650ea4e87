"""Credentials that a cloud issues, and the error if it does not."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class AccessToken:
    """A token and its lifetime in seconds. The representation does not show the token."""

    text: str = field(repr=False)
    lifetime_seconds: float


@dataclass(frozen=True)
class AwsSession:
    """Temporary AWS credentials and their lifetime in seconds. The representation shows no secret."""

    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)
    lifetime_seconds: float


IssuedCredentials = AccessToken | AwsSession


class IdentityError(Exception):
    """No credentials were issued. The message says why, without any part of a token or a key.

    `code` is one of `not_configured`, `token_file`, `bad_key`, `unreachable`, `timeout`, `tls`, `refused`,
    `unavailable`, `bad_answer`, `too_large`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

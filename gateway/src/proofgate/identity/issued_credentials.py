"""What a cloud issues, and why it does not."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class AccessToken:
    """A token, and for how many seconds it is one. Its representation does not show it."""

    text: str = field(repr=False)
    lifetime_seconds: float


@dataclass(frozen=True)
class AwsSession:
    """Temporary credentials of AWS, valid for so many seconds. Its representation shows none."""

    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)
    lifetime_seconds: float


IssuedCredentials = AccessToken | AwsSession


class IdentityError(Exception):
    """Nothing was issued. Says why, without a word of a token or a key.

    `code` is one of `not_configured`, `token_file`, `bad_key`, `unreachable`, `timeout`, `tls`, `refused`,
    `unavailable`, `bad_answer`, `too_large`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

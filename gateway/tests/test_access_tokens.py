"""Access tokens of providers: fetched early, kept while they are good, and never said."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from conftest import PATIENCE_SECONDS
from pydantic import SecretStr

from proofgate import _core
from proofgate.access_token_fetch import AccessToken, TokenError, fetch_access_token
from proofgate.access_tokens import BACKOFF_MAXIMUM_SECONDS, AccessTokens
from proofgate.config import Config
from proofgate.config.settings import Provider

LIFETIME = 4000.0


@dataclass
class Double:
    """A worker and a source of tokens, at a time that stands still."""

    now: float = 0.0
    fails: Exception | None = None
    fetched: int = 0
    given: list[tuple[str, str, float]] = field(default_factory=list)

    def set_access_token(self, provider: str, token: str, lifetime_seconds: float) -> None:
        self.given.append((provider, token, lifetime_seconds))

    def fetch(self, account: SecretStr | None) -> AccessToken:
        assert account is None
        self.fetched += 1
        if self.fails:
            raise self.fails
        return AccessToken(f"ya29.secret-{self.fetched}", LIFETIME)


@dataclass
class Named:
    """As much of a configuration as is looked at."""

    providers: tuple[Provider, ...]
    service_accounts: dict[str, SecretStr | None] = field(default_factory=dict)

    @property
    def settings(self) -> Named:
        return self


def followed(double: Double, **more: Any) -> AccessTokens:
    tokens = AccessTokens(
        cast(_core.Worker, double), fetch=double.fetch, clock=lambda: double.now, spread=lambda: 0.0
    )
    provider = Provider.model_validate(
        {"name": "v", "type": "VertexAI", "project": "p", "location": "global", **more}
    )
    accounts: dict[str, SecretStr | None] = {"v": None} if provider.service_account_file else {}
    tokens.follow(cast(Config, Named((provider,), accounts)))
    return tokens


def after(tokens: AccessTokens, double: Double, now: float) -> int:
    """How many tokens have been asked for once it is `now`."""

    async def turn() -> None:
        tokens.tick()
        await tokens.settle(PATIENCE_SECONDS)

    double.now = now
    asyncio.run(turn())
    return double.fetched


def test_a_token_is_replaced_at_three_quarters_of_its_life() -> None:
    double = Double()
    tokens = followed(double)
    assert [after(tokens, double, now) for now in (0, 2999, 3000, 3001)] == [1, 1, 2, 2]
    assert double.given == [("v", "ya29.secret-1", LIFETIME), ("v", "ya29.secret-2", LIFETIME)]


def test_failures_are_repeated_with_pauses_and_say_nothing_of_what_was_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    double = Double()
    tokens = followed(double)
    assert after(tokens, double, 0) == 1
    double.fails = TokenError("unreachable", "not reachable")
    assert [after(tokens, double, 3000 + now) for now in (0, 0.9, 1, 2.9, 3)] == [2, 2, 3, 3, 4]
    assert tokens.status() == [{"provider": "v", "seconds_left": 997, "error": "unreachable"}]
    assert "the one it has stays" in caplog.text
    double.fails = RuntimeError("sk-very-secret")
    after(tokens, double, 3000 + BACKOFF_MAXIMUM_SECONDS)
    assert tokens.status()[0]["error"] == "internal"
    assert "secret" not in caplog.text


def test_a_provider_whose_key_file_is_missing_is_fetched_nothing() -> None:
    double = Double()
    tokens = followed(double, serviceAccountFile="account.json")
    assert after(tokens, double, 0) == 0
    assert tokens.status() == []


def test_a_private_key_that_is_none_is_told_without_it() -> None:
    key = {"client_email": "a@b", "private_key": "sk-very-secret", "token_uri": "http://127.0.0.1:1/token"}
    with pytest.raises(TokenError) as refused:
        fetch_access_token(SecretStr(json.dumps(key)))
    assert refused.value.code == "bad_key"
    assert "sk-very" not in str(refused.value)
    assert "ya29" not in repr(AccessToken("ya29.x", 1))

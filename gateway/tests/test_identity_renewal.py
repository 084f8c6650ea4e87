"""Issued credentials of providers: renewed early, kept while they are valid, and never shown."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from conftest import PATIENCE_SECONDS
from pydantic import SecretStr

from proofgate import _core
from proofgate.config import Config
from proofgate.config.settings import Provider
from proofgate.forward_proxy import ForwardProxy
from proofgate.identity.google import ServiceAccountKey
from proofgate.identity.issued_credentials import AccessToken, AwsSession, IdentityError, IssuedCredentials
from proofgate.identity.renewal import MAX_BACKOFF_SECONDS, CredentialRenewer
from proofgate.identity.sources import Identity

LIFETIME = 4000.0
USED = 3990.0
VERTEX = {"name": "v", "type": "VertexAI", "project": "p", "location": "global"}
BEDROCK = {"name": "v", "type": "Bedrock", "baseURL": "https://bedrock.example", "region": "eu-west-1"}


@dataclass
class Double:
    """A worker and a source of credentials, with a fixed clock."""

    now: float = 0.0
    fails: Exception | None = None
    asked: list[Identity] = field(default_factory=list)
    given: list[tuple[str, object, float]] = field(default_factory=list)

    def set_access_token(self, provider: str, token: str, lifetime_seconds: float) -> None:
        self.given.append((provider, token, lifetime_seconds))

    def set_aws_credentials(self, provider: str, credentials: object, lifetime_seconds: float) -> None:
        self.given.append((provider, credentials, lifetime_seconds))

    def fetch(self, identity: Identity) -> IssuedCredentials:
        self.asked.append(identity)
        if self.fails:
            raise self.fails
        number = len(self.asked)
        if type(identity).__module__.endswith(".aws"):
            return AwsSession(f"ASIA{number}", f"secret-{number}", f"session-{number}", LIFETIME)
        return AccessToken(f"ya29.secret-{number}", LIFETIME)


@dataclass
class Named:
    """The parts of a configuration that the renewer reads."""

    providers: tuple[Provider, ...]
    service_accounts: dict[str, SecretStr | None] = field(default_factory=dict)
    source: Path = Path("/etc/proofgate/gateway.yaml")
    proxy: ForwardProxy | None = None

    @property
    def settings(self) -> Named:
        return self


def configuration(auth: dict[str, Any], base: dict[str, Any], key: str | None = None) -> Config:
    provider = Provider.model_validate({**base, "auth": auth})
    accounts = {"v": None if key is None else SecretStr(key)}
    return cast(Config, Named((provider,), accounts))


def followed(
    double: Double, auth: dict[str, Any] | None = None, base: dict[str, Any] = VERTEX
) -> CredentialRenewer:
    credentials = CredentialRenewer(
        cast(_core.Worker, double), fetch=double.fetch, clock=lambda: double.now, spread=lambda: 0.0
    )
    credentials.follow(configuration(auth or {"type": "GCPMetadataServer"}, base))
    return credentials


def after(credentials: CredentialRenewer, double: Double, now: float) -> int:
    """The number of requests for credentials so far, after a tick at `now`."""

    async def turn() -> None:
        credentials.tick()
        await credentials.wait_until_idle(PATIENCE_SECONDS)

    double.now = now
    asyncio.run(turn())
    return len(double.asked)


def test_a_token_is_replaced_at_three_quarters_of_its_life() -> None:
    double = Double()
    credentials = followed(double)
    assert [after(credentials, double, now) for now in (0, 2999, 3000, 3001)] == [1, 1, 2, 2]
    assert double.given == [("v", "ya29.secret-1", USED), ("v", "ya29.secret-2", USED)]


def test_a_session_of_aws_is_given_whole() -> None:
    double = Double()
    credentials = followed(double, {"type": "AWSPodIdentity"}, BEDROCK)
    after(credentials, double, 0)
    assert double.given == [("v", ("ASIA1", "secret-1", "session-1"), USED)]


def test_failures_are_repeated_with_pauses_and_say_nothing_of_what_was_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    double = Double()
    credentials = followed(double)
    assert after(credentials, double, 0) == 1
    double.fails = IdentityError("unreachable", "sts.example: not reachable")
    assert [after(credentials, double, 3000 + now) for now in (0, 0.9, 1, 2.9, 3)] == [2, 2, 3, 3, 4]
    (status,) = credentials.status()
    assert (status["provider"], status["type"]) == ("v", "GCPMetadataServer")
    assert (status["seconds_left"], status["error"]) == (987, "unreachable")
    assert "the current credentials stay in use" in caplog.text
    metrics = credentials.metrics().splitlines()
    assert 'proofgate_credential_renewals_total{provider="v",result="failed"} 3' in metrics
    assert 'proofgate_credential_renewals_total{provider="v",result="renewed"} 1' in metrics
    assert 'proofgate_credential_seconds_left{provider="v"} 987' in metrics
    double.fails = RuntimeError("sk-very-secret")
    after(credentials, double, 3000 + MAX_BACKOFF_SECONDS)
    assert credentials.status()[0]["error"] == "internal"
    double.now = 2 * LIFETIME
    assert 'proofgate_credential_seconds_left{provider="v"} 0' in credentials.metrics()
    assert "secret" not in caplog.text + str(credentials.status()) + credentials.metrics()


def test_another_identity_is_asked_for_at_once_and_the_same_one_is_not() -> None:
    double = Double()
    credentials = followed(double, {"type": "AWSWebIdentity"}, BEDROCK)
    assert after(credentials, double, 0) == 1
    credentials.follow(configuration({"type": "AWSWebIdentity"}, {**BEDROCK, "maxConcurrentRequests": 3}))
    assert after(credentials, double, 1) == 1
    role = {"roleARN": "arn:aws:iam::123456789012:role/other", "tokenFile": "tokens/aws"}
    credentials.follow(configuration({"type": "AWSWebIdentity", **role}, BEDROCK))
    # The credentials of the previous identity are kept meanwhile.
    assert credentials.status()[0]["seconds_left"] == USED - 1
    assert 'result="renewed"} 1' in credentials.metrics()
    assert after(credentials, double, 2) == 2
    elsewhere = {**BEDROCK, "baseURL": "https://elsewhere.example"}
    credentials.follow(configuration({"type": "AWSWebIdentity"}, elsewhere))
    assert credentials.status()[0]["seconds_left"] is None
    credentials.follow(configuration({"type": "AWSWebIdentity", **role}, BEDROCK))
    assert after(credentials, double, 3) == 3
    assert cast(Any, double.asked[-1]).auth.token_file == "/etc/proofgate/tokens/aws"


def test_a_provider_whose_key_file_is_missing_is_fetched_nothing() -> None:
    double = Double()
    auth = {"type": "GCPServiceAccountKey", "serviceAccountKeyFile": "account.json"}
    credentials = followed(double, auth)
    assert after(credentials, double, 0) == 0
    assert (credentials.status(), credentials.metrics()) == ([], "")
    credentials.follow(configuration(auth, VERTEX, key="{}"))
    assert after(credentials, double, 1) == 1
    assert isinstance(double.asked[0], ServiceAccountKey)


def test_no_representation_shows_what_was_issued() -> None:
    issued = (AccessToken("sk-very-1", 1), AwsSession("sk-very-2", "sk-very-3", "sk-very-4", 1))
    assert "sk-very" not in repr(issued)
    assert "sk-very" not in repr(ServiceAccountKey(SecretStr("sk-very-5")))

"""Providers' credentials with a limited lifetime: fetched at the start, renewed long before they expire.

Credentials stay in use until newer ones replace them or they expire, so a short outage of the issuer has no
effect. They are secret and never logged.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from proofgate import _core, profiling
from proofgate.config import Config
from proofgate.daemon_thread import run_in_daemon_thread
from proofgate.forward_proxy import ForwardProxy
from proofgate.identity.issued_credentials import AwsSession, IdentityError, IssuedCredentials
from proofgate.identity.sources import Identity, identity_of
from proofgate.refreshing import JITTER, Refresher, backoff
from proofgate.timed_request import use_proxy

log = logging.getLogger("proofgate")

TICK_SECONDS = 0.5
#: Maximum seconds to wait for the first credentials before the worker is ready.
INITIAL_FETCH_SECONDS = 5.0
#: Maximum seconds to fetch the credentials of one provider, including retries.
FETCH_TIMEOUT_SECONDS = 60.0
#: Fraction of their lifetime after which credentials are renewed.
_RENEWAL_FRACTION = 0.75
#: Seconds before their expiry after which credentials are no longer used, or this fraction of their lifetime if
#: it is shorter: a request takes time to be processed, and times in responses are whole seconds.
_MARGIN_SECONDS = 10.0
_EXPIRY_MARGIN_FRACTION = 0.05
INITIAL_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 60.0

CredentialFetcher = Callable[[Identity], IssuedCredentials]


def usable_seconds(lifetime: float) -> float:
    """Returns for how many seconds credentials with this lifetime are used."""
    return lifetime - min(_MARGIN_SECONDS, lifetime * _EXPIRY_MARGIN_FRACTION)


@dataclass
class CredentialSource:
    """One provider whose credentials are issued, and the state of their renewal. Times are in seconds of a
    monotonic clock."""

    provider: str
    base_url: str
    kind: str
    """The `type` of the provider's `auth`."""
    identity: Identity = field(repr=False)
    due_at: float
    running: bool = False
    failures: int = 0
    #: Whether credentials were ever fetched for this identity.
    fetched: bool = False
    #: Number of renewals since the start of the worker.
    renewals: int = 0
    total_failures: int = 0
    expires_at: float | None = None
    #: Code and message of the last renewal, if it failed.
    error_code: str | None = None
    error_message: str | None = None

    def inherit_from(self, before: CredentialSource) -> None:
        """Replaces the source of another identity for the same provider. The worker keeps the old credentials
        until new ones arrive or they expire, unless the provider's URL or its kind of credentials has
        changed."""
        self.renewals, self.total_failures = before.renewals, before.total_failures
        if (before.base_url, before.is_aws) == (self.base_url, self.is_aws):
            self.expires_at = before.expires_at

    @property
    def is_aws(self) -> bool:
        """Whether the credentials sign requests (AWS)."""
        return self.kind.startswith("AWS")

    def record_success(self, now: float, lifetime: float, spread: float) -> None:
        """Records new credentials. `spread`, from -1 to 1, varies the time of renewal so that workers do not
        send requests simultaneously."""
        self.running, self.failures, self.error_code, self.error_message = False, 0, None, None
        self.renewals += 1
        self.fetched = True
        self.expires_at = now + usable_seconds(lifetime)
        # The next request is never immediate, because a metadata server returns the same token until it
        # expires.
        self.due_at = now + max(
            lifetime * _RENEWAL_FRACTION * (1 - JITTER * abs(spread)), INITIAL_BACKOFF_SECONDS
        )

    def record_failure(self, now: float, code: str, reason: str, spread: float) -> float:
        """Records a failure and returns the seconds until the next attempt."""
        self.running, self.error_code, self.error_message = False, code, reason
        self.failures += 1
        self.total_failures += 1
        delay = backoff(self.failures, INITIAL_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS, spread)
        self.due_at = now + delay
        return delay

    def seconds_left(self, now: float) -> float:
        """The remaining seconds of the current credentials; 0 without any."""
        return 0.0 if self.expires_at is None else max(self.expires_at - now, 0.0)

    def status(self, now: float) -> dict[str, Any]:
        """The status for the admin port."""
        left = None if self.expires_at is None else round(self.seconds_left(now))
        return {
            "provider": self.provider,
            "type": self.kind,
            "seconds_left": left,
            "error": self.error_code,
            "message": self.error_message,
        }


class CredentialRenewer(Refresher):
    """Renews the credentials of a worker's providers. Runs on the event loop and waits in threads."""

    description = "the credentials of providers"
    tick_seconds = TICK_SECONDS
    first_round_seconds = INITIAL_FETCH_SECONDS

    def __init__(
        self,
        worker: _core.Worker,
        *,
        fetch: CredentialFetcher = lambda identity: identity.fetch(),
        clock: Callable[[], float] = time.monotonic,
        spread: Callable[[], float] = lambda: random.uniform(-1, 1),  # noqa: S311 - spreads load, hides nothing
    ) -> None:
        super().__init__()
        self._worker = worker
        self._fetch = fetch
        self._clock = clock
        self._spread = spread
        self._sources: dict[str, CredentialSource] = {}
        self._proxy: ForwardProxy | None = None

    def follow(self, config: Config) -> None:
        """Fetches credentials for the providers of this configuration from now on. Unchanged providers keep
        their credentials."""
        known, now = self._sources, self._clock()
        self._sources = {}
        self._proxy = config.proxy
        for provider in config.settings.providers:
            identity = identity_of(provider, config)
            if identity is None or provider.auth is None:
                continue
            source = known.get(provider.name)
            if source is None or (source.base_url, source.identity) != (provider.base_url, identity):
                kind, before = provider.auth.type, source
                source = CredentialSource(provider.name, provider.base_url, kind, identity, due_at=now)
                if before is not None:
                    source.inherit_from(before)
            self._sources[provider.name] = source

    def tick(self) -> None:
        """Starts to fetch all credentials that are due."""
        now = self._clock()
        for source in self._sources.values():
            if now >= source.due_at and not source.running:
                source.running = True
                self._start(self._refresh(source))

    def status(self) -> list[dict[str, Any]]:
        """The status of all providers whose credentials are issued."""
        now = self._clock()
        return [source.status(now) for source in self._sources.values()]

    def metrics(self) -> str:
        """The status as Prometheus text; empty without such a provider."""
        sources, now = self._sources.values(), self._clock()
        if not sources:
            return ""
        renewals, left = "proofgate_credential_renewals", "proofgate_credential_seconds_left"
        lines = [
            f"# HELP {renewals} Attempts to renew a provider's issued credentials, by result.",
            f"# TYPE {renewals} counter",
        ]
        for source in sources:
            for result, count in (("renewed", source.renewals), ("failed", source.total_failures)):
                lines.append(f'{renewals}_total{{provider="{source.provider}",result="{result}"}} {count}')
        lines += [
            f"# HELP {left} Seconds until a provider's issued credentials expire; 0 if there are none.",
            f"# TYPE {left} gauge",
            *(f'{left}{{provider="{source.provider}"}} {source.seconds_left(now):.0f}' for source in sources),
        ]
        return "".join(f"{line}\n" for line in lines)

    async def _refresh(self, source: CredentialSource) -> None:
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_SECONDS):
                issued, came = await run_in_daemon_thread(
                    lambda: self._fetch_with_time(source.identity), "credentials"
                )
            if self._sources.get(source.provider) is not source:
                return  # the configuration was replaced meanwhile
            await profiling.run_in_thread(self._install, source.provider, issued, came)
        except TimeoutError:
            self._handle_failure(source, "timeout", "no answer in time")
        except (IdentityError, _core.ProofgateError) as error:
            self._handle_failure(source, error.code, str(error))
        except Exception as error:
            # The error's text may come from a library that quotes its input.
            log.error(  # noqa: TRY400
                "provider %s: its credentials cannot be fetched: %s", source.provider, type(error).__name__
            )
            self._handle_failure(source, "internal", "an internal error")
        else:
            lifetime = issued.lifetime_seconds
            if source.failures or not source.fetched:
                log.info(
                    "provider %s: new credentials are valid for %.0f s (%s)",
                    source.provider,
                    lifetime,
                    source.kind,
                )
            source.record_success(came, lifetime, self._spread())

    def _fetch_with_time(self, identity: Identity) -> tuple[IssuedCredentials, float]:
        """Fetches credentials, and returns them with the time of their arrival."""
        with use_proxy(self._proxy):
            return self._fetch(identity), self._clock()

    def _install(self, provider: str, issued: IssuedCredentials, came: float) -> None:
        lifetime = max(usable_seconds(issued.lifetime_seconds) - (self._clock() - came), 0.0)
        if isinstance(issued, AwsSession):
            keys = (issued.access_key_id, issued.secret_access_key, issued.session_token)
            self._worker.set_aws_credentials(provider, keys, lifetime)
        else:
            self._worker.set_access_token(provider, issued.text, lifetime)

    def _handle_failure(self, source: CredentialSource, code: str, reason: str) -> None:
        if self._sources.get(source.provider) is not source:
            return
        now = self._clock()
        delay = source.record_failure(now, code, reason, self._spread())
        valid = source.seconds_left(now) > 0
        log.warning(
            "provider %s: no new credentials (%s): %s; %s, next attempt in %.0f s",
            *(source.provider, source.kind, reason),
            *("the current credentials stay in use" if valid else "its models are refused", delay),
        )

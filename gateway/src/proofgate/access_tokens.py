"""The access tokens of providers that take them in the place of keys: fetched at the start and long before
they end.

A token stays until a newer one replaces it or it ends: who gives tokens may be away for a while, and nobody
notices. They are secrets: nothing here says them.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from proofgate import _core, profiling
from proofgate.access_token_fetch import AccessToken, TokenError, fetch_access_token
from proofgate.config import Config
from proofgate.daemon_thread import in_daemon_thread
from proofgate.refreshing import SPREAD, Refreshing, backoff

log = logging.getLogger("proofgate")

TICK_SECONDS = 0.5
#: For the first token, before the worker calls itself ready.
FIRST_SECONDS = 5.0
#: For all that the fetching of one may take, its repetitions included.
PATIENCE_SECONDS = 60.0
#: After this part of its life a token is replaced.
_RENEWED_AFTER = 0.75
PAUSE_SECONDS = 1.0
BACKOFF_MAXIMUM_SECONDS = 60.0

Fetch = Callable[[SecretStr | None], AccessToken]


@dataclass
class TokenSource:
    """One provider that takes access tokens, and how fetching them went. Times are of a monotonic clock."""

    provider: str
    base_url: str
    account: SecretStr | None = field(repr=False)
    due: float
    running: bool = False
    failures: int = 0
    ends: float | None = None
    error: str | None = None

    def succeed(self, now: float, lifetime: float, spread: float) -> None:
        """Notes a token; `spread`, from -1 to 1, keeps workers from asking all at once."""
        self.running, self.failures, self.error = False, 0, None
        self.ends = now + lifetime
        # At once again is never asked: a metadata server hands out one that is nearly over until it is.
        self.due = now + max(lifetime * _RENEWED_AFTER * (1 - SPREAD * abs(spread)), PAUSE_SECONDS)

    def fail(self, now: float, code: str, spread: float) -> float:
        """Notes a failure and returns how many seconds later the next attempt is due."""
        self.running, self.error = False, code
        self.failures += 1
        delay = backoff(self.failures, PAUSE_SECONDS, BACKOFF_MAXIMUM_SECONDS, spread)
        self.due = now + delay
        return delay

    def status(self, now: float) -> dict[str, Any]:
        """What the admin port shows."""
        left = None if self.ends is None else max(round(self.ends - now), 0)
        return {"provider": self.provider, "seconds_left": left, "error": self.error}


class AccessTokens(Refreshing):
    """Keeps the access tokens of a worker's providers fresh. Runs on the event loop and waits in threads."""

    what = "the access tokens of providers"
    tick_seconds = TICK_SECONDS
    first_seconds = FIRST_SECONDS

    def __init__(
        self,
        worker: _core.Worker,
        *,
        fetch: Fetch = fetch_access_token,
        clock: Callable[[], float] = time.monotonic,
        spread: Callable[[], float] = lambda: random.uniform(-1, 1),  # noqa: S311 - spreads load, hides nothing
    ) -> None:
        super().__init__()
        self._worker = worker
        self._fetch = fetch
        self._clock = clock
        self._spread = spread
        self._sources: dict[str, TokenSource] = {}

    def follow(self, config: Config) -> None:
        """Fetches for the providers of a configuration from now on; the token of one that stays is kept."""
        known, now = self._sources, self._clock()
        self._sources = {}
        for provider in config.settings.providers:
            account = config.service_accounts.get(provider.name)
            if provider.type != "VertexAI" or (provider.service_account_file is not None and account is None):
                continue
            source = known.get(provider.name)
            if source is None or (source.base_url, source.account) != (provider.base_url, account):
                source = TokenSource(provider.name, provider.base_url, account, due=now)
            self._sources[provider.name] = source

    def tick(self) -> None:
        """Begins to fetch whatever is due now."""
        now = self._clock()
        for source in self._sources.values():
            if now >= source.due and not source.running:
                source.running = True
                self._begin(self._refresh(source))

    def status(self) -> list[dict[str, Any]]:
        """The providers that take access tokens."""
        now = self._clock()
        return [source.status(now) for source in self._sources.values()]

    async def _refresh(self, source: TokenSource) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                token = await in_daemon_thread(lambda: self._fetch(source.account), "access-token")
            if self._sources.get(source.provider) is not source:
                return  # another configuration came meanwhile
            lifetime = token.lifetime_seconds
            await profiling.in_thread(self._worker.set_access_token, source.provider, token.text, lifetime)
        except TimeoutError:
            self._failed(source, "timeout", "no answer in time")
        except (TokenError, _core.ProofgateError) as error:
            self._failed(source, error.code, str(error))
        except Exception as error:
            # Its text may be of a library that quotes what it read.
            log.error(  # noqa: TRY400
                "provider %s: its access token cannot be fetched: %s", source.provider, type(error).__name__
            )
            self._failed(source, "internal", "an internal error")
        else:
            if source.ends is None or source.failures:
                log.info("provider %s: an access token for %.0f s", source.provider, lifetime)
            source.succeed(self._clock(), lifetime, self._spread())

    def _failed(self, source: TokenSource, code: str, reason: str) -> None:
        if self._sources.get(source.provider) is not source:
            return
        now = self._clock()
        delay = source.fail(now, code, self._spread())
        valid = source.ends is not None and source.ends > now
        log.warning(
            "provider %s: no access token: %s; %s, next attempt in %.0f s",
            *(source.provider, reason, "the one it has stays" if valid else "its models are refused", delay),
        )

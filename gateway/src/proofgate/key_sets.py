"""The keys of JWT issuers. They are fetched at the start, periodically, and when a token names an unknown
key.

A key set stays in use until a newer one replaces it. If an issuer is unreachable, only its new keys are
missing, and its users can still sign in.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from proofgate_schema.counts import format_count

from proofgate import _core, profiling
from proofgate.config import Config
from proofgate.daemon_thread import run_in_daemon_thread
from proofgate.forward_proxy import ForwardProxy
from proofgate.key_set_fetch import TIMEOUT_SECONDS, KeySetFetchError, fetch_key_set
from proofgate.refreshing import JITTER, Refresher, backoff
from proofgate.timed_request import use_proxy

log = logging.getLogger("proofgate")

TICK_SECONDS = 1.0
# Minimum seconds between two fetches, because a client with invented key ids could make the worker fetch
# keys.
MIN_INTERVAL_SECONDS = 10.0
MAX_BACKOFF_SECONDS = 300.0

KeySetFetcher = Callable[[str], str]


@dataclass
class KeySetSource:
    """One issuer that publishes its keys, and the state of fetching them. Times are in seconds of a monotonic
    clock."""

    issuer: str
    url: str
    refresh_seconds: float
    due_at: float
    started_at: float | None = None
    running: bool = False
    requested: bool = False
    failures: int = 0
    keys: int | None = None
    updated_at: str | None = None
    error: str | None = None

    def is_due(self, now: float) -> bool:
        """Whether the keys are to be fetched now. After a failure, requests do not make the next attempt
        earlier."""
        if self.running:
            return False
        if self.started_at is not None and now < self.started_at + MIN_INTERVAL_SECONDS:
            return False
        return now >= self.due_at or (self.requested and self.failures == 0)

    def mark_started(self, now: float) -> None:
        """Records that a fetch has started."""
        self.running, self.requested, self.started_at = True, False, now

    def record_success(self, now: float, keys: int, spread: float) -> None:
        """Records a fetched key set. `spread`, from -1 to 1, varies the next fetch so that workers do not
        send requests simultaneously."""
        self.running, self.failures, self.error = False, 0, None
        self.keys, self.updated_at = keys, datetime.now(UTC).isoformat(timespec="seconds")
        self.due_at = now + self.refresh_seconds * (1 + JITTER * spread)

    def record_failure(self, now: float, code: str, spread: float) -> float:
        """Records a failure and returns the seconds until the next attempt."""
        self.running, self.error = False, code
        self.failures += 1
        most = min(self.refresh_seconds, MAX_BACKOFF_SECONDS)
        delay = backoff(self.failures, MIN_INTERVAL_SECONDS, most, spread)
        self.due_at = now + delay
        return delay

    def status(self) -> dict[str, Any]:
        """The status for the admin port."""
        return {
            "issuer": self.issuer,
            "source": "url",
            "keys": self.keys,
            "updated_at": self.updated_at,
            "error": self.error,
        }


class KeySets(Refresher):
    """Refreshes the key sets of a worker's issuers. Runs on the event loop and waits in threads."""

    description = "the key sets of issuers"
    tick_seconds = TICK_SECONDS
    first_round_seconds = TIMEOUT_SECONDS

    def __init__(
        self,
        worker: _core.Worker,
        *,
        fetch: KeySetFetcher = fetch_key_set,
        clock: Callable[[], float] = time.monotonic,
        spread: Callable[[], float] = lambda: random.uniform(-1, 1),  # noqa: S311 - spreads load, hides nothing
    ) -> None:
        super().__init__()
        self._worker = worker
        self._fetch = fetch
        self._clock = clock
        self._spread = spread
        self._sources: dict[str, KeySetSource] = {}
        self._in_files: dict[str, int] = {}
        self._proxy: ForwardProxy | None = None

    def load_files(self, config: Config) -> None:
        """Passes the key sets of `jwksFile` to the worker. Raises the core's ConfigError."""
        self._in_files = {
            issuer: self._worker.set_key_set(issuer, text) for issuer, text in config.key_sets.items()
        }
        for issuer, keys in self._in_files.items():
            if not keys:
                log.warning("issuer %s: no usable key in its jwksFile: its tokens are refused", issuer)

    def apply_config(self, config: Config) -> None:
        """Fetches keys for the issuers of this configuration from now on. Unchanged issuers keep their
        keys."""
        known, now = self._sources, self._clock()
        self._sources = {}
        self._proxy = config.proxy
        for issuer in config.issuers:
            if issuer.jwks_url is None:
                continue
            source = known.get(issuer.issuer)
            if source is None or source.url != issuer.jwks_url:
                source = KeySetSource(issuer.issuer, issuer.jwks_url, issuer.refresh_seconds, due_at=now)
            source.refresh_seconds = issuer.refresh_seconds
            source.due_at = min(source.due_at, now + issuer.refresh_seconds)
            self._sources[issuer.issuer] = source

    def tick(self) -> None:
        """Starts to fetch all key sets that are due."""
        if not self._sources:
            return
        for issuer in self._worker.take_requested_key_sets():
            if issuer in self._sources:
                self._sources[issuer].requested = True
        now = self._clock()
        for source in self._sources.values():
            if source.is_due(now):
                source.mark_started(now)
                self._start(self._refresh(source))

    def status(self) -> list[dict[str, Any]]:
        """The status of all issuers whose keys are known or being fetched."""
        in_files = [
            {"issuer": issuer, "source": "file", "keys": keys, "updated_at": None, "error": None}
            for issuer, keys in self._in_files.items()
        ]
        return in_files + [source.status() for source in self._sources.values()]

    async def _refresh(self, source: KeySetSource) -> None:
        try:
            text = await run_in_daemon_thread(lambda: self._fetch_key_set(source.url), "key-set")
            if self._sources.get(source.issuer) is not source:
                return  # the configuration was replaced meanwhile
            keys = await profiling.run_in_thread(self._worker.set_key_set, source.issuer, text)
        except (KeySetFetchError, _core.ProofgateError) as error:
            self._record_failure(source, error.code, str(error))
        except Exception:
            log.exception("the keys of %s cannot be fetched", source.issuer)
            self._record_failure(source, "internal", "an internal error")
        else:
            if source.keys != keys or source.failures:
                log.log(
                    logging.INFO if keys else logging.WARNING,
                    "issuer %s: %d usable keys",
                    source.issuer,
                    keys,
                )
            source.record_success(self._clock(), keys, self._spread())

    def _fetch_key_set(self, url: str) -> str:
        with use_proxy(self._proxy):
            return self._fetch(url)

    def _record_failure(self, source: KeySetSource, code: str, reason: str) -> None:
        if self._sources.get(source.issuer) is not source:
            return
        delay = source.record_failure(self._clock(), code, self._spread())
        effect = (
            "its tokens are refused"
            if source.keys is None
            else f"the worker still uses {format_count(source.keys, 'previously fetched key')}"
        )
        log.warning(
            "issuer %s: its keys cannot be fetched: %s; %s, next attempt in %.0f s",
            *(source.issuer, reason, effect, delay),
        )

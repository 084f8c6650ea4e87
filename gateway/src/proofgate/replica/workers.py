"""The workers whose logs are copied: their URLs, and whether they answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from proofgate.replica.log_copy import LedgerSource

#: Seconds before an unresponsive worker is contacted again, so that other workers do not wait for it.
RETRY_SECONDS = 5.0


class Workers:
    """The workers of shards. `listed` returns the URL of each by its shard, and `open_worker` opens one for
    reading.

    A place is the path of a log: `<shard>/<incarnation>`. For use by one thread.
    """

    def __init__(
        self, listed: Callable[[], Mapping[str, str]], open_worker: Callable[[str], LedgerSource]
    ) -> None:
        self._listed, self._open = listed, open_worker
        self._urls: Mapping[str, str] = {}
        self._sources: dict[str, tuple[str, LedgerSource]] = {}
        self._begun: dict[str, LedgerSource] = {}
        self._logs: dict[str, frozenset[str]] = {}
        self._away: dict[str, float] = {}

    def start_round(self) -> None:
        """Starts a round: reads the list."""
        self._urls, self._begun, self._logs = self._listed(), {}, {}
        kept = {shard: one for shard, one in self._sources.items() if one[0] == self._urls.get(shard)}
        self._sources = kept

    def has_worker(self, place: str) -> bool:
        """Whether a log's shard has a worker."""
        return shard_of(place) in self._urls

    def source(self, place: str) -> LedgerSource | None:
        """Returns the worker of a log for this round; None if no worker answers. Raises OSError."""
        shard = shard_of(place)
        if self._away.get(shard, 0.0) > time.monotonic():
            return None
        if shard not in self._begun and shard in self._urls:
            url = self._urls[shard]
            _, source = self._sources.get(shard) or (url, self._open(url))
            self._sources[shard] = (url, source)
            source.start_round()
            self._begun[shard] = source
        return self._begun.get(shard)

    def has_log(self, source: LedgerSource, place: str) -> bool:
        """Whether a log's responding worker has the log. The worker is queried once in a round. Raises
        OSError."""
        shard, incarnation = place.split("/")
        if shard not in self._logs:
            try:
                self._logs[shard] = frozenset(source.list_folder(shard))
            except FileNotFoundError:
                self._logs[shard] = frozenset()
        return incarnation in self._logs[shard]

    def mark_failed(self, place: str) -> None:
        """Records that the worker of a log gave no usable response."""
        self._away[shard_of(place)] = time.monotonic() + RETRY_SECONDS

    def responding_sources(self) -> list[LedgerSource]:
        """The workers that were read in this round without a failure."""
        now = time.monotonic()
        return [source for shard, source in self._begun.items() if self._away.get(shard, 0.0) <= now]

    def absence_reason(self, place: str) -> str:
        """Returns why a log's worker is not read."""
        why = "does not answer" if self.has_worker(place) else "was removed by a scale-down"
        return f"the worker of shard {shard_of(place)} {why}"


def shard_of(place: str) -> str:
    """Returns the shard of a log from its place."""
    return place.split("/")[0]

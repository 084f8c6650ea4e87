"""Ages of logs: a log ends at the latest when the next log of its shard starts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Iterator

from proofgate.replica.workers import shard_of
from proofgate.ulid_time import milliseconds_of

_DAY_MILLISECONDS = 86_400_000


def superseded_logs(places: Collection[str], keep_days: int) -> Iterator[str]:
    """Yields the logs whose successor in the shard started more than `keep_days` ago.

    Days are counted back from the clock or from the newest log, whichever is earlier, so that a wrong time in
    one of them makes no log too old.
    """
    began = {place: milliseconds_of(place.split("/")[1]) for place in places}
    newest = min(time.time_ns() // 1_000_000, max(began.values(), default=0))
    kept_from = newest - keep_days * _DAY_MILLISECONDS
    for place, successor in itertools.pairwise(sorted(places)):
        if shard_of(place) == shard_of(successor) and began[successor] < kept_from:
            yield place

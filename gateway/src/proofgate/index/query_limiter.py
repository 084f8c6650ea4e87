"""A limit on the concurrent queries and exports of readers."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from proofgate.index.readers import Reader

#: Maximum number of concurrent queries: other requests to the port also need threads.
MAX_CONCURRENT = 4
#: Maximum number of concurrent queries of tenants' readers, so that readers of all tenants are not blocked.
MAX_FOR_TENANTS = 3
#: Maximum number of concurrent queries of one tenant's readers, or of one reader of all tenants.
MAX_PER_READER = 2


class TooManyQueriesError(Exception):
    """Too many queries are running, of all readers or of this one."""


class QueryLimiter:
    """A limiter with slots for concurrent queries. Thread-safe."""

    def __init__(
        self, at_once: int = MAX_CONCURRENT, of_tenants: int = MAX_FOR_TENANTS, of_one: int = MAX_PER_READER
    ) -> None:
        """`at_once` is the number of slots, `of_tenants` the maximum for all readers of tenants, and `of_one`
        the maximum for one tenant or one reader of all tenants."""
        self._at_once, self._of_tenants, self._of_one = at_once, of_tenants, of_one
        self._lock = threading.Lock()
        self._taken: Counter[tuple[str, ...]] = Counter()

    @contextmanager
    def slot(self, reader: Reader) -> Iterator[None]:
        """Holds a slot during the block. Raises TooManyQueriesError instead of waiting."""
        release = self.acquire(reader)
        try:
            yield
        finally:
            release()

    def acquire(self, reader: Reader) -> Callable[[], None]:
        """Holds a slot until the returned function is called. Raises TooManyQueriesError instead of
        waiting."""
        holder = (
            ("reader", reader.name, reader.subject or "")
            if reader.tenant is None
            else ("tenant", reader.tenant)
        )
        with self._lock:
            of_tenants = sum(count for (kind, *_), count in self._taken.items() if kind == "tenant")
            if (
                self._taken.total() >= self._at_once
                or self._taken[holder] >= self._of_one
                or (reader.tenant is not None and of_tenants >= self._of_tenants)
            ):
                raise TooManyQueriesError
            self._taken[holder] += 1

        released = False

        def release() -> None:
            nonlocal released
            with self._lock:
                if released:
                    return
                released = True
                self._taken[holder] -= 1
                # Remove the names of readers without slots.
                self._taken += Counter()

        return release

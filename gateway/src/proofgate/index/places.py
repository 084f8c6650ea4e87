"""How many questions of readers are answered at a time, and whose."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from proofgate.index.readers import Reader

#: Questions at a time: other readers of the port need threads too.
AT_ONCE = 4
#: Of all tenants' readers together: whoever sees all tenants finds a place beside them.
OF_TENANTS = 3
#: Of the readers of one tenant, or of one reader that sees all of them.
OF_ONE = 2


class NoPlaceError(Exception):
    """Too many questions are being answered, of all readers or of this one."""


class Places:
    """Where questions are answered. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def of(self, reader: Reader) -> Iterator[None]:
        """Holds a place for the length of the block. Raises NoPlaceError, and waits for none."""
        holder = ("reader", reader.name) if reader.tenant is None else ("tenant", reader.tenant)
        with self._lock:
            of_tenants = sum(count for (kind, _), count in self._taken.items() if kind == "tenant")
            if (
                self._taken.total() >= AT_ONCE
                or self._taken[holder] >= OF_ONE
                or (reader.tenant is not None and of_tenants >= OF_TENANTS)
            ):
                raise NoPlaceError
            self._taken[holder] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[holder] -= 1
                # Names of readers that are gone are not kept.
                self._taken += Counter()

"""Ports on loopback for servers that are told theirs, and bind it some time later.

A port that the system chose for somebody who then let go of it may be the next one's that asks the system for any, as
most servers of tests do. These are below all that it chooses from, and each process of pytest-xdist has its own.
"""

from __future__ import annotations

import itertools
import os
import random
import socket
from collections.abc import Iterator, Sequence

#: Above what the local cluster listens on, and below the ports of Services (from 30000) and of Linux (from 32768).
FIRST, END = 20_000, 30_000
SLICES = 8


def slice_of(worker: str) -> range:
    """The ports of a process, by the name that pytest-xdist gave it; empty of one that it did not start."""
    number = int(worker.removeprefix("gw")) % (SLICES - 1) if worker else SLICES - 1
    size = (END - FIRST) // SLICES
    return range(FIRST + number * size, FIRST + (number + 1) * size)


class Ports:
    """Gives ports out of some, in a random order, and one again only when all others were given since."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._count = len(ports)
        # Tests set the seed of the module's own generator, and one order for all would be none.
        self._order: Iterator[int] = itertools.cycle(random.SystemRandom().sample(ports, len(ports)))

    def take(self, count: int) -> list[int]:
        """Ports that nobody listens on, all of them different. Raises `OSError` if there are not as many."""
        found: list[int] = []
        for port in itertools.islice(self._order, self._count):
            if _is_free(port):
                found.append(port)
            if len(found) == count:
                return found
        raise OSError(f"{len(found)} of {self._count} ports are free, and not {count}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


_OWN = Ports(slice_of(os.environ.get("PYTEST_XDIST_WORKER", "")))


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, all of them different. Raises `OSError` if there are not as many."""
    return _OWN.take(count)


def free_port() -> int:
    """A port that nobody listens on. Raises `OSError` if there is none."""
    return free_ports(1)[0]

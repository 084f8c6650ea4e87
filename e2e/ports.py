"""Ports on loopback for servers that get a port number and bind it later.

A port that the system chose and that was released again may be given to the next server that asks the system for a
port. The ports of this module are below the system's range, and each process of pytest-xdist has its own.
"""

from __future__ import annotations

import itertools
import os
import random
import socket
from collections.abc import Iterator, Sequence

#: The range above the ports of the local cluster, and below those of Services (from 30000) and Linux (from 32768).
FIRST, END = 20_000, 30_000
SLICES = 8


def slice_of(worker: str) -> range:
    """The ports of a process by its name in pytest-xdist; empty if pytest-xdist did not start it."""
    number = int(worker.removeprefix("gw")) % (SLICES - 1) if worker else SLICES - 1
    size = (END - FIRST) // SLICES
    return range(FIRST + number * size, FIRST + (number + 1) * size)


class Ports:
    """Allocates ports of a range in random order, and repeats a port only after all others."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._count = len(ports)
        # The system's generator is used, because tests set the seed of the module's generator, and processes would
        # share an order.
        self._order: Iterator[int] = itertools.cycle(random.SystemRandom().sample(ports, len(ports)))

    def take(self, count: int) -> list[int]:
        """Different free ports. Raises `OSError` if there are not enough."""
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
    """Different free ports. Raises `OSError` if there are not enough."""
    return _OWN.take(count)


def free_port() -> int:
    """A free port. Raises `OSError` if there is none."""
    return free_ports(1)[0]

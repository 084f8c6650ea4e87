"""A separate network of a test, with only a loopback interface."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)
_HERE = Path("/proc/thread-self/ns/net")
_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


@contextmanager
def own_network() -> Iterator[None]:
    """Moves this thread, and the processes that it starts, into a new network namespace during the block."""
    before = os.open(_HERE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_LIBC.unshare(_CLONE_NEWNET))
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            _check(_LIBC.setns(before, _CLONE_NEWNET))
    finally:
        os.close(before)


def limit_ports(first: int, last: int) -> None:
    """Limits the source ports of connections in this thread's network, unless they are bound to another port."""
    _PORTS.write_text(f"{first} {last}\n")


def _check(returned: int) -> None:
    if returned != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

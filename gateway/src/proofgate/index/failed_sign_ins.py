"""Records of failed sign-ins at the readers' port: the address of the client, and how often.

Anybody can try to sign in, so the records are limited: for each address one immediate line, and one line that
summarises the rest of a minute.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import Any

from proofgate.index.schema import format_time

log = logging.getLogger("proofgate.index")

#: Seconds of failed sign-ins that one line summarises.
WINDOW_SECONDS = 60
#: Maximum number of addresses with a line in one window. Further addresses share one line.
MAX_PEERS = 16
#: Prefix length of an IPv6 network that counts as one address.
_IPV6_PREFIX_LENGTH = 64


class FailedSignIns:
    """Writes failed sign-ins with `write`, which may raise OSError; the sign-in fails in any case.
    Thread-safe."""

    def __init__(self, write: Callable[[dict[str, Any]], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._began = monotonic()
        #: Number of failed sign-ins without a separate line, by address and code.
        self._more: Counter[tuple[str | None, str]] = Counter()
        self._peers: set[str] = set()
        #: Number of failed sign-ins since the start of the process, by code, for metrics.
        self.totals: Counter[str] = Counter()

    def record_failure(self, host: str | None, code: str) -> None:
        """Records a failed sign-in from an address, with a code."""
        self.flush()
        peer = _peer(host)
        with self._lock:
            self.totals[code] += 1
            if peer in self._peers or len(self._peers) >= MAX_PEERS:
                self._more[peer if peer in self._peers else None, code] += 1
                return
            self._peers.add(peer)
        self._add({"sign_in": code, "peer": peer, "count": 1})

    def flush(self, *, ending: bool = False) -> None:
        """Writes the summary lines if the minute is over or the process is ending."""
        with self._lock:
            if not ending and monotonic() - self._began < WINDOW_SECONDS:
                return
            more, self._more = self._more, Counter()
            self._peers.clear()
            self._began = monotonic()
        for (peer, code), count in more.items():
            self._add({"sign_in": code, "peer": peer, "count": count, "for_seconds": WINDOW_SECONDS})

    def _add(self, entry: dict[str, Any]) -> None:
        try:
            self._write({"time": format_time(time.time_ns() // 1000), **entry})
        except OSError as error:
            log.error("failed sign-ins cannot be recorded: %s", error)  # noqa: TRY400 - it is told


def _peer(host: str | None) -> str:
    """The address that is recorded: for IPv6, its network."""
    try:
        address = ipaddress.ip_address((host or "").partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.IPv6Network((address, _IPV6_PREFIX_LENGTH), strict=False))
    return str(address)

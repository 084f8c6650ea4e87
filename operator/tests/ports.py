"""Ports on loopback for servers that a test starts."""

import socket
from contextlib import ExitStack


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on, all of them different: HAProxy would bind one port twice."""
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def free_port() -> int:
    """Return a port that nobody listens on."""
    return free_ports(1)[0]

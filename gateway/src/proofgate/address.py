"""Parsing of socket addresses."""

from __future__ import annotations


def split_address(text: str) -> tuple[str, int]:
    """Splits `host:port` or `[v6]:port` into host and port. Raises ValueError, which says what to write
    instead."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("write an IPv6 address in brackets, for example [::]:8080")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError("write an address and a port, for example 0.0.0.0:8080")
    return host, int(port)


def reachable_address(address: str) -> str:
    """Returns the address at which this machine reaches a server that listens on `address`: loopback if the
    server listens on all addresses."""
    host, port = split_address(address)
    return f"127.0.0.1:{port}" if host in ("0.0.0.0", "::") else address  # noqa: S104 - nothing is bound

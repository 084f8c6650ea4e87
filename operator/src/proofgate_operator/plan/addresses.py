"""Checks of hosts in URLs and of address ranges that the patterns of the schema cannot express."""

import ipaddress
import re
from urllib.parse import urlsplit

#: The maximum length of a host name in characters; 255 octets in wire format (RFC 1035, section 2.3.4).
_MAX_HOST_LENGTH = 253


def address_fault(url: str) -> str | None:
    """Return why a URL that matches its field's pattern cannot be reached by any worker; None if it is
    valid."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return "its host in brackets is not an IPv6 address"
    if "[" in url.split("/")[2]:
        return None if _is_address(host, 6) else "its host in brackets is not an IPv6 address"
    if len(host) > _MAX_HOST_LENGTH:
        return f"its host is longer than {_MAX_HOST_LENGTH} characters"
    # TLS treats a name whose last label is a number as an invalid IPv4 address (RFC 1123, section 2.1).
    if host.rstrip(".").rpartition(".")[2].isdigit() and not _is_address(host, 4):
        return "its host ends with a number but is not an IPv4 address"
    return None


def range_fault(cidr: str) -> str | None:
    """Return why a text that matches its field's pattern is not an address range; None if it is valid."""
    try:
        ipaddress.ip_network(cidr)
    except ValueError as error:
        return str(error)
    return None


def no_proxy_fault(entry: str) -> str | None:
    """Return why an entry of `noProxy` that matches its field's pattern is invalid; None if it is valid."""
    bracketed = re.fullmatch(r"\[([^]]+)\](:\d+)?", entry)
    host = bracketed[1] if bracketed else entry
    if "/" not in host and host.count(":") < 2 and not bracketed:
        return None
    return range_fault(host)


def _is_address(host: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(host).version == version
    except ValueError:
        return False

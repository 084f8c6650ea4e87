"""What is wrong with the host of a URL or a range of addresses, where no pattern of the schema can tell."""

import ipaddress
import re
from urllib.parse import urlsplit

#: RFC 1035, section 2.3.4: 255 octets on the wire, of which a name has 253 characters to write.
_MAX_HOST_LENGTH = 253


def address_fault(url: str) -> str | None:
    """Return why no worker could reach a URL that fits its field's pattern; None if nothing is wrong."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return "its host in brackets is not an IPv6 address"
    if "[" in url.split("/")[2]:
        return None if _is_address(host, 6) else "its host in brackets is not an IPv6 address"
    if len(host) > _MAX_HOST_LENGTH:
        return f"its host is longer than {_MAX_HOST_LENGTH} characters"
    # TLS takes a name whose last label is a number for a broken IPv4 address (RFC 1123, section 2.1).
    if host.rstrip(".").rpartition(".")[2].isdigit() and not _is_address(host, 4):
        return "its host ends with a number but is not an IPv4 address"
    return None


def range_fault(cidr: str) -> str | None:
    """Return why a range that fits its field's pattern is none; None if nothing is wrong."""
    try:
        ipaddress.ip_network(cidr)
    except ValueError as error:
        return str(error)
    return None


def no_proxy_fault(entry: str) -> str | None:
    """Return why an entry that fits its field's pattern is none; None if nothing is wrong."""
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

"""Detects providers at addresses to which workers do not connect, or only unencrypted.

The worker decides by the IP address that a name resolves to; this module only checks the URL itself. The
ranges and names are those of rust-core/crates/upstream/src/upstream/egress.rs.
"""

import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.plan.addresses import address_fault, range_fault
from proofgate_operator.plan.problems import Fault

#: The provider is served, but traffic to it is unencrypted.
PLAIN_HTTP = "PlainHTTP"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        (
            *("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42", "fd00:c1::a9fe:a9fe"),
            *("192.0.0.192", "fd00:a9fe:a9fe::1", "100.100.100.200", "168.63.129.16"),
        ),
    )
)
_METADATA_NAMES = frozenset(
    ("metadata.google.internal", "metadata.goog", "metadata", "instance-data.ec2.internal")
)
#: Suffixes of names that no public server has (RFC 6761, RFC 6762, RFC 8375, ICANN's .internal, and
#: Kubernetes).
_PRIVATE_SUFFIXES = (".svc", ".local", ".localhost", ".internal", ".lan", ".home.arpa", ".test", ".invalid")


def upstream_faults(gateway: Gateway) -> Iterator[Fault]:
    """Yield the faults of provider addresses that are valid as URLs."""
    egress = gateway.spec.egress
    allow = egress.allow if egress else None
    usable = allow is None or not any(map(range_fault, allow))
    for provider in gateway.spec.providers:
        url = provider.base_url
        if url is None or address_fault(url) or not usable:
            continue
        owner = f"spec.providers[{provider.name}]"
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
        fault = _unreachable(owner, host, allow)
        if fault:
            yield fault
        elif parts.scheme == "http" and _is_public(host):
            message = (
                f"{owner}.baseURL uses plain http to {host}: keys, prompts and responses can be read in "
                "transit. Use https"
            )
            yield Fault(owner, PLAIN_HTTP, message)


def _unreachable(owner: str, host: str, allow: tuple[str, ...] | None) -> Fault | None:
    """Return why workers do not connect to a host; None if no reason is known."""
    address = _address(host)
    outside = "is not in a range of spec.egress.allow"
    if address is None:
        if allow is None and host.lower() in _METADATA_NAMES:
            return _forbidden(owner, host, "is a name of the cloud's metadata service")
        return None
    if allow is not None and any(address in ipaddress.ip_network(cidr) for cidr in allow):
        return None
    if _is_node_local(address):
        why = "is a link-local address, a multicast address, or an address of the cloud's metadata service"
        return _forbidden(owner, host, f"{why}, and {outside}" if allow is not None else why)
    if allow is not None:
        message = (
            f"{owner}.baseURL: {host} {outside}, so workers do not connect to this address. Add a "
            "range that contains it"
        )
        return Fault(owner, "AddressNotAllowed", message)
    return None


def _forbidden(owner: str, host: str, why: str) -> Fault:
    message = (
        f"{owner}.baseURL: {host} {why}: workers do not connect to it. Set the provider's own address, or "
        f"add a range with the address to spec.egress.allow if {host} is correct"
    )
    return Fault(owner, "AddressForbidden", message)


def _address(host: str) -> Address | None:
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    return (found.version == 6 and found.ipv4_mapped) or found


def _is_node_local(address: Address) -> bool:
    if address in _METADATA or address.is_link_local or address.is_multicast or address.is_unspecified:
        return True
    if isinstance(address, ipaddress.IPv4Address):
        return address == ipaddress.IPv4Address("255.255.255.255")
    within = _embedded_ipv4(address)
    return within is not None and _is_node_local(within)


def _embedded_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that a translator derives from an IPv6 address: NAT64, 6to4,
    IPv4-compatible."""
    octets = address.packed
    if address.sixtofour is not None:
        return address.sixtofour
    nat64 = octets[:12] == bytes.fromhex("0064ff9b") + bytes(8) or octets[:6] == bytes.fromhex("0064ff9b0001")
    return ipaddress.IPv4Address(octets[12:]) if nat64 or octets[:12] == bytes(12) else None


def _is_public(host: str) -> bool:
    """Return whether a host's name indicates that it is outside of the cluster and its network."""
    address = _address(host)
    if address is not None:
        return address.is_global
    name = host.lower()
    return "." in name and ".svc." not in name and not name.endswith(_PRIVATE_SUFFIXES)

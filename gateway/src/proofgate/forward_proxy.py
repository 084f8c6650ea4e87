"""The forward proxy for outgoing connections, and the destinations that bypass it (`noProxy`)."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic import SecretStr

_LABEL = r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_PORTS = {"http": 80, "https": 443}
#: Metadata services of clouds at other than link-local addresses. They answer only this machine.
_METADATA_HOSTS = ("metadata.google.internal", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254")
_EXAMPLES = "write a name such as example.com, an address, a range such as 10.0.0.0/8, or '*'"


@dataclass(frozen=True)
class NoProxyRule:
    """One entry of `noProxy`, with the semantics of curl and Go. A range is compared only with addresses in
    URLs, not with the addresses to which a name resolves."""

    name: str | None = None
    """A host name; the rule also matches its subdomains."""
    subdomains_only: bool = False
    """Whether the rule matches only the subdomains, and not the host itself."""
    network: ipaddress.IPv4Network | ipaddress.IPv6Network | None = None
    port: int | None = None
    """The port that the rule matches; None: every port."""

    @classmethod
    def parse(cls, text: str) -> NoProxyRule:
        """Parses one entry. Raises ValueError, which says what to write instead."""
        if text == "*":
            return cls()
        host, port = _split_port(text)
        try:
            return cls(network=ipaddress.ip_network(host), port=port)
        except ValueError as error:
            if "/" in host:
                raise ValueError(f"{_EXAMPLES}: {error}") from None
        name = re.sub(r"^\*\.", ".", host.lower()).rstrip(".")
        if not _NAME.fullmatch(name.removeprefix(".")):
            raise ValueError(_EXAMPLES)
        return cls(name.removeprefix("."), name.startswith("."), port=port)

    def matches(self, host: str, port: int) -> bool:
        """Whether the rule matches a port and a host, which is in lower case and has no final dot."""
        if self.port not in (None, port):
            return False
        if self.network is not None:
            address = _address(host)
            # A network of one IP version contains no address of the other.
            return address is not None and address in self.network
        if self.name is None:
            return True
        return host.endswith("." + self.name) or (host == self.name and not self.subdomains_only)


@dataclass(frozen=True)
class ForwardProxy:
    """A forward proxy that opens tunnels (CONNECT). Its representation shows no secret."""

    host: str
    port: int
    no_proxy_rules: tuple[NoProxyRule, ...] = ()
    authorization: SecretStr | None = field(default=None, repr=False)
    """The value of `Proxy-Authorization`."""
    is_usable: bool = True
    """False if the proxy needs credentials that could not be read."""

    def applies_to(self, url: str) -> bool:
        """Whether connections to an http(s) URL use the proxy."""
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
        port = parts.port or _PORTS.get(parts.scheme, 0)
        return not _is_local(host) and not any(rule.matches(host, port) for rule in self.no_proxy_rules)


def _split_port(text: str) -> tuple[str, int | None]:
    bracketed = re.fullmatch(r"\[([^]]+)\](?::([0-9]{1,5}))?", text)
    named = re.fullmatch(r"([^:\[\]]+):([0-9]{1,5})", text)
    matched = bracketed or named
    if matched is None:
        return text, None
    host, port = matched.groups()
    if port is None:
        return host, None
    if not 0 < int(port) < 65536:
        raise ValueError("a port is a number from 1 to 65535")
    return host, int(port)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_local(host: str) -> bool:
    """Whether a host is this machine, or a service that answers only this machine. No remote proxy can reach
    it."""
    address = _address(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost") or host in _METADATA_HOSTS
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_loopback or mapped.is_link_local or str(address) in _METADATA_HOSTS

"""The fields of the section `egress` that the gateway's file and a manifest share: where workers may
connect."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from proofgate_schema.annotations import UNIQUE_ITEMS, KubernetesOverride
from proofgate_schema.fields import TupleOf, file_validator
from proofgate_schema.section import Section
from proofgate_schema.urls import AUTHORITY, split_url

_PATTERN_REASON = "the API server checks patterns and lengths"


def _proxy_url(text: str) -> str:
    if "@" in text:
        raise ValueError("remove the user name and password from the URL: they belong in files")
    url = split_url(text, "http://proxy.example.com:3128")
    if url.scheme != "http":
        raise ValueError(
            "use http: the connection to the proxy has no TLS, and connections to providers use TLS inside "
            "the tunnel"
        )
    if url.path not in ("", "/") or url.query or url.fragment:
        raise ValueError("remove everything after host and port: a tunnel has no path")
    return text.rstrip("/")


def _address_range(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        raise ValueError(f"write a range of addresses such as 10.0.0.0/8: {error}") from error


ProxyURL = Annotated[
    str,
    file_validator(_proxy_url),
    KubernetesOverride(_PATTERN_REASON, {"maxLength": 300, "pattern": rf"^http://{AUTHORITY}/?$"}),
]
AddressRange = Annotated[
    str,
    file_validator(_address_range),
    KubernetesOverride(_PATTERN_REASON, {"maxLength": 49, "pattern": r"^[0-9A-Fa-f.:]+/[0-9]{1,3}$"}),
]


class EgressProxy(Section):
    """A forward proxy for connections from workers: each one is a tunnel (CONNECT) with TLS inside. Each side
    has its own fields for the credentials, which are secrets."""

    url: ProxyURL
    """URL of the proxy, for example http://proxy.example.com:3128. TLS to the proxy itself is not
    supported."""


class Egress(Section):
    """Addresses to which workers may connect to reach providers."""

    allow: (
        Annotated[
            TupleOf[AddressRange],
            UNIQUE_ITEMS,
            KubernetesOverride("etcd limits the size of an object", {"minItems": 1, "maxItems": 32}),
        ]
        | None
    ) = None
    """Allowed address ranges, for example 10.0.0.0/8. A provider's name must resolve to an address in one of
    them. With a proxy, all addresses of the provider must be allowed. Absent: all addresses except link-local
    addresses, multicast addresses, and addresses of cloud metadata services."""

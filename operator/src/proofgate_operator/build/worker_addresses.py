"""The workers' addresses for the agent next to each HAProxy, which sets them in HAProxy.

The agent does not use the API server, because that would put a token into pods that process untrusted input
first. It does not use DNS, because cached answers contain pods that no longer exist.
"""

from collections.abc import Mapping

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import haproxy
from proofgate_operator.build.digests import keyed_digest
from proofgate_operator.build.haproxy_config import server_name
from proofgate_operator.build.naming import Manifest, child_manifest, names

#: Placeholder for a worker that should exist but has no address.
_NO_ADDRESS = "-"


def config_map(gateway: Gateway, addresses: Mapping[int, str | None]) -> Manifest:
    """Return the ConfigMap of addresses by worker number; None: the worker has no address."""
    lines = (f"{server_name(number)} {addresses[number] or _NO_ADDRESS}\n" for number in sorted(addresses))
    head = child_manifest(gateway, "v1", "ConfigMap", names(gateway).addresses, haproxy.COMPONENT)
    return {**head, "data": {haproxy.ADDRESSES_FILE: "".join(lines)}}


def digest(manifest: Manifest) -> str:
    """Return a digest that identifies one state of the addresses."""
    return keyed_digest(b"", [manifest["data"][haproxy.ADDRESSES_FILE]])

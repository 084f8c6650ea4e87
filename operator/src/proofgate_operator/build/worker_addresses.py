"""Where the workers are, for the agent beside each HAProxy, which sets their addresses in it.

The agent could read that from the API server or ask a name server. The one would put a token into pods that
strangers' bytes reach first; the other tells of pods that are gone for as long as answers are cached.
"""

from collections.abc import Mapping

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import haproxy
from proofgate_operator.build.digests import keyed_digest
from proofgate_operator.build.haproxy_config import server_name
from proofgate_operator.build.naming import Manifest, child_manifest, names

#: What the agent reads for a worker that is to be and has no address.
_NO_ADDRESS = "-"


def config_map(gateway: Gateway, addresses: Mapping[int, str | None]) -> Manifest:
    """Return the ConfigMap of addresses, by the number of the worker; None for one without."""
    lines = (f"{server_name(number)} {addresses[number] or _NO_ADDRESS}\n" for number in sorted(addresses))
    head = child_manifest(gateway, "v1", "ConfigMap", names(gateway).addresses, haproxy.COMPONENT)
    return {**head, "data": {haproxy.ADDRESSES_FILE: "".join(lines)}}


def digest(manifest: Manifest) -> str:
    """Return what tells one state of the addresses from another."""
    return keyed_digest(b"", [manifest["data"][haproxy.ADDRESSES_FILE]])

"""HAProxy's runtime maps: the tenant of each key, and the worker of each tenant."""

import shlex
from collections.abc import Mapping, Sequence

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.api.load_balancer import Affinity
from proofgate_operator.build import haproxy_config
from proofgate_operator.build.digests import keyed_digest
from proofgate_operator.build.haproxy_config import server_name
from proofgate_operator.build.owners import (
    Owner,
    WorkerShares,
    owner,
    owners,
    placement_group,
    plans_with_shared_limits,
    weights,
)
from proofgate_operator.build.tenant_keys import KeyDigest

TENANT_MAP = "tenants.map"
OWNER_MAP = "owners.map"
WEIGHT_MAP = "weights.map"
#: Map with the key by which HAProxy authenticates to workers.
ROUTING_MAP = "routing.map"
#: Maps to which GatewayTenants add entries, so one Secret does not contain all of their content.
SHARED_MAPS = (TENANT_MAP, OWNER_MAP)


def start_command(own: str, kept: str, command: Sequence[str]) -> list[str]:
    """Return the command that starts HAProxy with the maps in the folder `kept`, which its agent writes.

    A map that the agent has not written yet is copied from the folder `own`; the agent may write it
    meanwhile.
    """
    copies = (
        f"[ -e {kept}/{name} ] || {{ cp -f {own}/{name} {kept}/{name}.first && "
        f"ln {kept}/{name}.first {kept}/{name}; rm -f {kept}/{name}.first; }}"
        for name in SHARED_MAPS
    )
    return ["/bin/sh", "-c", "; ".join([*copies, f"exec {shlex.join(command)}"])]


def haproxy_maps(
    gateway: Gateway,
    keys: Mapping[str, Sequence[KeyDigest]],
    workers: int,
    shares: WorkerShares,
    routing_key: str,
) -> dict[str, str]:
    """Return HAProxy's maps: the tenant of each key's digest, the worker of each tenant, the weights of
    workers without their full share of tenants, and the key by which HAProxy authenticates to workers.

    If tokens name tenants, the tenants' names are also keys of the first map; a name is shorter than a
    digest. `workers` is the wanted number of workers. HAProxy does not check expiry: an expired key still
    reaches its worker, which refuses it with a reason.
    """
    tenant_of = {key.digest: tenant for tenant in keys for key in keys[tenant]}
    if gateway.spec.jwt:
        tenant_of |= {tenant.name: tenant.name for tenant in gateway.spec.tenants}
    owner_of = owners(gateway, workers, shares)
    weight_of = weights(shares)
    return {
        TENANT_MAP: "".join(f"{key} {tenant_of[key]}\n" for key in sorted(tenant_of)),
        OWNER_MAP: "".join(f"{tenant} {owner_entry(owner_of[tenant])}\n" for tenant in sorted(owner_of)),
        ROUTING_MAP: f"{haproxy_config.ROUTING_KEY} {routing_key}\n" if routing_key else "",
        WEIGHT_MAP: "".join(
            f"{server_name(ordinal)} {weight_of[ordinal]}\n" for ordinal in sorted(weight_of)
        ),
    }


def attached_entry(
    gateway: Gateway, tenant: str, plan: str, workers: int, shares: WorkerShares
) -> str | None:
    """Return a GatewayTenant's entry in the map of owners; None if the ring decides by its name.

    The ring hashes the third name of the entry, if there is one.
    """
    group = placement_group(tenant, plan) if plan in plans_with_shared_limits(gateway) else None
    match gateway.spec.load_balancer.affinity:
        case Affinity.REQUIRED:
            return owner_entry(owner(group or tenant, None, workers, shares))
        case Affinity.PREFERRED if group is not None:
            return f"{haproxy_config.OWNER_SEPARATOR * 2}{group}"
        case _:
            return None


def owner_entry(owned: Owner) -> str:
    """Return the map entry of a tenant's owner and substitute; in one entry, they change together."""
    both = (owned.ordinal,) if owned.backup is None else (owned.ordinal, owned.backup)
    return haproxy_config.OWNER_SEPARATOR.join(map(server_name, both))


def map_digest(secret: bytes, maps: Mapping[str, str]) -> str:
    """Return the digest of HAProxy's maps, computed by `keyed_digest`."""
    return keyed_digest(secret, [part for name in sorted(maps) for part in (name, maps[name])])

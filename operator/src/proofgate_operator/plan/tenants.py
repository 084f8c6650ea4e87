"""Which keys are whose among the tenants of a gateway's own list.

What is wrong with a key costs its tenant that key, and nobody else anything: whoever may write one tenant's
Secret must not keep another one's leaked key alive.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import Manifest
from proofgate_operator.build.tenant_keys import KeyDigest
from proofgate_operator.plan.api_keys import read_keys
from proofgate_operator.plan.problems import Fault


@dataclass(frozen=True, repr=False)
class TenantKeys:
    """The keys of every tenant that lists some, and what is wrong with them."""

    keys: Mapping[str, tuple[KeyDigest, ...]]
    faults: tuple[Fault, ...]


def read_tenant_keys(
    gateway: Gateway, secrets: Mapping[str, Manifest | None], holders: Mapping[str, str]
) -> TenantKeys:
    """Return each tenant's keys, and every fault found on the way.

    `holders` are the tenants by the digests of the keys that they have had until now: of two that claim one
    key, it stays with the one that has it, and without one nobody gets it.
    """
    claims: dict[str, dict[str, KeyDigest]] = {}
    faults: list[Fault] = []
    for tenant in gateway.spec.tenants:
        if tenant.api_keys is None:
            continue
        owner = _field(tenant.name)
        found = read_keys(f"{owner}.apiKeys", tenant.api_keys, secrets)
        claims[tenant.name] = {key.digest: key for key in found.keys}
        faults += [Fault(owner, fault.reason, fault.message) for fault in found.faults]
        if not found.keys and not found.faults:
            faults.append(Fault(owner, "NoKeys", f"{owner}.apiKeys holds no key: the tenant is locked out"))
    faults += _settle(claims, holders)
    keys = {name: tuple(found[digest] for digest in sorted(found)) for name, found in claims.items()}
    return TenantKeys(keys, tuple(faults))


def expired_faults(keys: Mapping[str, tuple[KeyDigest, ...]], now: float) -> Iterator[Fault]:
    """Yield the tenants whose keys have all expired; `now` is in seconds since 1970."""
    for tenant, found in keys.items():
        if found and all(key.end <= now for key in found):
            last = max(found, key=lambda key: key.end)
            message = (
                f"every key in {_field(tenant)}.apiKeys has expired, the last of them {last.name} at"
                f" {last.expires}: requests get 401. Add a key, or give one a later notAfter"
            )
            yield Fault(_field(tenant), "KeysExpired", message)


def listed_digests(gateway: Gateway, secrets: Mapping[str, Manifest | None]) -> frozenset[str]:
    """Return the digests of all keys that the gateway's own list claims."""
    found = (
        read_keys("", tenant.api_keys, secrets).keys for tenant in gateway.spec.tenants if tenant.api_keys
    )
    return frozenset(key.digest for keys in found for key in keys)


def _settle(claims: dict[str, dict[str, KeyDigest]], holders: Mapping[str, str]) -> Iterator[Fault]:
    """Leave every key to one tenant at most, and yield who does not get one."""
    claimants: dict[str, list[tuple[str, KeyDigest]]] = {}
    for tenant, found in claims.items():
        for digest, key in found.items():
            claimants.setdefault(digest, []).append((tenant, key))
    for digest, several in claimants.items():
        if len(several) == 1:
            continue
        for tenant, key in several:
            if holders.get(digest) == tenant:
                continue
            del claims[tenant][digest]
            others = " and ".join(_item(*other) for other in several if other[0] != tenant)
            message = f"{_item(tenant, key)} and {others} are the same key: a key belongs to one tenant"
            yield Fault(_field(tenant), "KeyShared", message)


def _field(tenant: str) -> str:
    return f"spec.tenants[{tenant}]"


def _item(tenant: str, key: KeyDigest) -> str:
    return f"{_field(tenant)}.apiKeys[{key.name}]"

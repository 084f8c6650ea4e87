"""Assigns keys to the tenants of a gateway's own list.

A fault of a key affects only that key of its tenant. Who may write one tenant's Secret must not be able to
keep another tenant's leaked key valid.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from proofgate_operator.api.access import ApiKey
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.gateway_secrets import KEY_SOURCES, key_source_id
from proofgate_operator.build.naming import Manifest, names
from proofgate_operator.build.tenant_keys import KeyDigest, keys_entry
from proofgate_operator.plan.api_keys import entry, read_keys
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.problems import Fault
from proofgate_operator.plan.unreadable_resources import UnreadableResource


@dataclass(frozen=True, repr=False)
class TenantKeys:
    """The keys of every tenant that lists keys, and the faults of the others."""

    keys: Mapping[str, tuple[KeyDigest, ...]]
    faults: tuple[Fault, ...]


def read_tenant_keys(
    gateway: Gateway,
    secrets: Mapping[str, Manifest | None],
    holders: Mapping[str, str],
    unread: Mapping[str, UnreadableResource] = MappingProxyType({}),
    live: Manifest | None = None,
) -> TenantKeys:
    """Return each tenant's keys, and all faults.

    `holders` are the current holders of keys by digest: if two tenants claim a key, its holder keeps it;
    without a holder, neither gets it. `unread` are Secrets that could not be read: their keys in `live`, the
    Secret of digests, stay.
    """
    claims: dict[str, dict[str, KeyDigest]] = {}
    faults: list[Fault] = []
    for tenant in gateway.spec.tenants:
        if tenant.api_keys is None:
            continue
        owner = _field(tenant.name)
        held = previous_digests(tenant.name, tenant.api_keys, unread, live)
        found = read_keys(f"{owner}.apiKeys", tenant.api_keys, secrets, unread, held)
        claims[tenant.name] = {key.digest: key for key in found.keys}
        faults += [Fault(owner, fault.reason, fault.message) for fault in found.faults]
        if not found.keys and not found.faults:
            faults.append(Fault(owner, "NoKeys", f"{owner}.apiKeys has no key: the tenant is locked out"))
    faults += _settle(claims, holders)
    keys = {name: tuple(found[digest] for digest in sorted(found)) for name, found in claims.items()}
    return TenantKeys(keys, tuple(faults))


def expired_key_faults(keys: Mapping[str, tuple[KeyDigest, ...]], now: float) -> Iterator[Fault]:
    """Yield a fault for each tenant whose keys have all expired; `now` is in seconds since 1970."""
    for tenant, found in keys.items():
        if found and all(key.expires_at <= now for key in found):
            last = max(found, key=lambda key: key.expires_at)
            message = (
                f"every key in {_field(tenant)}.apiKeys has expired, the last key ({last.name}) at"
                f" {last.not_after}: requests get 401. Add a key, or set a later notAfter"
            )
            yield Fault(_field(tenant), "KeysExpired", message)


def listed_digests(gateway: Gateway, seen: ObservedState) -> frozenset[str]:
    """Return the digests of all keys in the gateway's own list."""
    live = seen.child("Secret", names(gateway).tenants)
    found = (
        read_keys(
            "",
            listed,
            seen.secrets,
            seen.unreadable_secrets,
            previous_digests(tenant.name, listed, seen.unreadable_secrets, live),
        )
        for tenant in gateway.spec.tenants
        if (listed := tenant.api_keys)
    )
    return frozenset(key.digest for read in found for key in read.keys)


def previous_digests(
    tenant: str, listed: Sequence[ApiKey], unread: Mapping[str, UnreadableResource], live: Manifest | None
) -> dict[str, str]:
    """Return the digests in `live` that come from unreadable Secrets, by item name.

    An item that now names another Secret or entry has no previous digest.
    """
    if live is None or not any(not blind.is_expired for blind in unread.values()):
        return {}
    digests = [line.split()[0] for line in (entry(live, keys_entry(tenant)) or "").splitlines() if line]
    lines = (line.split() for line in (entry(live, KEY_SOURCES) or "").splitlines())
    sources = next((words[1:] for words in lines if words and words[0] == tenant), [])
    by_source = dict(zip(sources, digests, strict=True)) if len(sources) == len(digests) else {}
    held: dict[str, str] = {}
    for item in listed:
        reference = item.secret_ref
        if reference is None or reference.name not in unread or unread[reference.name].is_expired:
            continue
        digest = by_source.get(key_source_id(item))
        if digest is not None:
            held[item.name] = digest
    return held


def _settle(claims: dict[str, dict[str, KeyDigest]], holders: Mapping[str, str]) -> Iterator[Fault]:
    """Leave each key to at most one tenant, and yield faults for the others."""
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

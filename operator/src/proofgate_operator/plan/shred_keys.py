"""Determines which tenants have a shred key and which need one."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from proofgate_schema.counts import format_count

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import Manifest, names
from proofgate_operator.build.shred_keys import shred_keys_entry
from proofgate_operator.plan.observed_state import ObservedState
from proofgate_operator.plan.ownership import Ownership, classify
from proofgate_operator.plan.problems import Fault, Problem

#: The maximum size of a Secret's entries in characters, out of a mebibyte in total. The name of each entry
#: counts twice, because managedFields contain it too.
_MAX_ENTRY_CHARACTERS = 960 << 10
#: The part of it that is reserved for the gateway's own list of tenants, twice what that list needs; and the
#: maximum for GatewayTenants of one namespace, including deleted tenants.
_GATEWAY_TENANTS_SHARE = 64 << 10
_NAMESPACE_SHARE = (_MAX_ENTRY_CHARACTERS - _GATEWAY_TENANTS_SHARE) // 4
#: Further characters of an entry.
_ENTRY_OVERHEAD = 24
#: Length of a key's line in base64.
_LINE_LENGTH = 60
#: The maximum number of names in a message.
_MAX_NAMED = 5


@dataclass(frozen=True, repr=False)
class ShredKeysState:
    """The state of the shred keys. `to_make` are the missing entries of a Secret with the version `version`
    (None: no Secret). `is_pending`: a tenant of the gateway's own list is among them, and workers would
    refuse a file that names it. `omitted_tenants` are tenants of that list whose keys have no space;
    `capacity_problems` reports this, and no other tenant is affected. `contents` are only used in digests."""

    to_make: tuple[str, ...] = ()
    version: str | None = None
    is_pending: bool = False
    problems: tuple[Problem, ...] = ()
    omitted_tenants: tuple[str, ...] = ()
    capacity_problems: tuple[Problem, ...] = ()
    faults: tuple[Fault, ...] = ()
    contents: tuple[str, ...] = ()

    def without_omitted_tenants(self, gateway: Gateway) -> Gateway:
        """Return the gateway without the omitted tenants."""
        if not self.omitted_tenants:
            return gateway
        tenants = tuple(tenant for tenant in gateway.spec.tenants if tenant.name not in self.omitted_tenants)
        return gateway.model_copy(update={"spec": gateway.spec.model_copy(update={"tenants": tenants})})


#: The state if no tenant has shred keys.
NO_SHRED_KEYS = ShredKeysState()


def read_shred_keys(gateway: Gateway, seen: ObservedState) -> ShredKeysState:
    """Return the state of the shred keys, including the keys to create."""
    wanted = gateway.spec.ledger.shred_keys
    if wanted is None:
        return NO_SHRED_KEYS
    listed = [tenant.name for tenant in gateway.spec.tenants]
    if wanted.secret_ref is not None:
        return _from_user_secret(wanted.secret_ref.name, listed, seen)
    live = seen.child("Secret", names(gateway).shred_keys)
    if classify(gateway, live) in (Ownership.FOREIGN, Ownership.LEAVING):
        return ShredKeysState(is_pending=True)
    there = _existing_entries(live)
    attached = [entry for name in sorted(seen.tenants.names) if (entry := shred_keys_entry(name))]
    room = _Capacity(there)
    lacking = [entry for entry in (*listed, *attached) if entry not in there]
    fitting = [entry for entry in lacking if room.reserve(entry)]
    without = set(lacking) - set(fitting)
    left_out = tuple(name for name in listed if name in without)
    told = tuple(_capacity_problems(names(gateway).shred_keys, left_out))
    # A provider that stores objects of such a tenant could not delete them.
    kept = {provider.objects_of for provider in gateway.spec.providers} & set(left_out)
    return ShredKeysState(
        to_make=tuple(fitting),
        version=live["metadata"].get("resourceVersion") if live else None,
        is_pending=live is None or bool(kept) or not there.keys() >= set(listed) - without,
        problems=told if kept else (),
        omitted_tenants=() if kept else left_out,
        capacity_problems=() if kept else told,
        faults=tuple(_capacity_faults(without - set(left_out))),
        contents=_contents(live),
    )


class _Capacity:
    """The free space of the Secret, by namespace."""

    def __init__(self, there: Mapping[str, str]) -> None:
        self._taken: Counter[str] = Counter()
        self._whole = 0
        for entry, text in there.items():
            self._consume(_namespace_of(entry), 2 * len(entry) + len(text) + _ENTRY_OVERHEAD)

    def reserve(self, entry: str) -> bool:
        """Reserve space for a key; return whether there was enough."""
        namespace, size = _namespace_of(entry), 2 * len(entry) + _LINE_LENGTH + _ENTRY_OVERHEAD
        if self._whole + size > _MAX_ENTRY_CHARACTERS:
            return False
        if namespace:
            attached = self._whole - self._taken[""] + size
            if (
                attached > _MAX_ENTRY_CHARACTERS - _GATEWAY_TENANTS_SHARE
                or self._taken[namespace] + size > _NAMESPACE_SHARE
            ):
                return False
        self._consume(namespace, size)
        return True

    def _consume(self, namespace: str, size: int) -> None:
        self._taken[namespace] += size
        self._whole += size


def _namespace_of(entry: str) -> str:
    """Return the namespace of a GatewayTenant's entry; empty for a tenant of the gateway's own list."""
    return entry[1:].partition("_")[0] if entry.startswith("_") else ""


def _capacity_problems(secret: str, left_out: Sequence[str]) -> Iterator[Problem]:
    if left_out:
        yield Problem(
            "NoRoom",
            (
                f"Secret {secret} is full, so these tenants have no shred key and are not served: "
                f"{_list_some(left_out)}"
            ),
        )


def _capacity_faults(without: Set[str]) -> Iterator[Fault]:
    if without:
        crowded = [namespace for namespace, _ in Counter(map(_namespace_of, sorted(without))).most_common()]
        message = (
            f"no shred key for {format_count(len(without), 'tenant')}, because the Secret is full, or their "
            f"namespace has reached its limit: {_list_some(crowded)}"
        )
        yield Fault("spec.ledger.shredKeys", "NoRoom", message)


def _list_some(found: Sequence[str]) -> str:
    more = f", and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    return f"{', '.join(found[:_MAX_NAMED])}{more}"


def _from_user_secret(name: str, listed: list[str], seen: ObservedState) -> ShredKeysState:
    secret = seen.secrets.get(name)
    where = f"Secret {name}, named by spec.ledger.shredKeys.secretRef,"
    if secret is None:
        return ShredKeysState(
            is_pending=True, problems=(Problem("SecretMissing", f"{where} does not exist"),)
        )
    lacking = [tenant for tenant in listed if tenant not in _existing_entries(secret)]
    if lacking:
        told = f"{where} has no shred key for {', '.join(lacking)}"
        return ShredKeysState(is_pending=True, problems=(Problem("SecretInvalid", told),))
    return ShredKeysState(contents=_contents(secret))


def _existing_entries(secret: Manifest | None) -> dict[str, str]:
    data = (secret or {}).get("data") or {}
    return {name: text for name, text in data.items() if text}


def _contents(secret: Manifest | None) -> tuple[str, ...]:
    return tuple(part for pair in sorted(_existing_entries(secret).items()) for part in pair)

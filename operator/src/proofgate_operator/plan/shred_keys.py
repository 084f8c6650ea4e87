"""Which tenants have a shred key, and which are to get one."""

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

#: Characters that the entries of a Secret may take; it may have a mebibyte with everything else. The name of
#: each stands there twice, once among the fields that somebody manages.
_MAX_ENTRY_CHARACTERS = 960 << 10
#: Of these, what tenants with objects of their own leave to the gateway's own list, which is twice what that
#: takes; and what those of one namespace may take, tenants that are gone among them.
_GATEWAY_TENANTS_SHARE = 64 << 10
_NAMESPACE_SHARE = (_MAX_ENTRY_CHARACTERS - _GATEWAY_TENANTS_SHARE) // 4
#: What else an entry takes.
_ENTRY_OVERHEAD = 24
#: Base64 of a line.
_LINE_LENGTH = 60
#: Names that a message has.
_MAX_NAMED = 5


@dataclass(frozen=True, repr=False)
class ShredKeysState:
    """`to_make` are entries that lack, of a Secret whose version is `version`, or of none. `waits` says that
    a tenant of the gateway's own list is among them: workers would refuse a file that names it. `left_out`
    are tenants of that list for whose keys there is no room, which is told by `capacity_problems` and costs nobody
    else anything. `contents` are for digests alone."""

    to_make: tuple[str, ...] = ()
    version: str | None = None
    is_pending: bool = False
    problems: tuple[Problem, ...] = ()
    omitted_tenants: tuple[str, ...] = ()
    capacity_problems: tuple[Problem, ...] = ()
    faults: tuple[Fault, ...] = ()
    contents: tuple[str, ...] = ()

    def without_omitted_tenants(self, gateway: Gateway) -> Gateway:
        """Return the gateway without the tenants that are left out."""
        if not self.omitted_tenants:
            return gateway
        tenants = tuple(tenant for tenant in gateway.spec.tenants if tenant.name not in self.omitted_tenants)
        return gateway.model_copy(update={"spec": gateway.spec.model_copy(update={"tenants": tenants})})


#: Where no tenant has any.
NO_SHRED_KEYS = ShredKeysState()


def read_shred_keys(gateway: Gateway, seen: ObservedState) -> ShredKeysState:
    """Return what is to become of the shred keys."""
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
    # A provider that keeps the objects of one is nothing without it.
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
    """What is left of the Secret, and to whom."""

    def __init__(self, there: Mapping[str, str]) -> None:
        self._taken: Counter[str] = Counter()
        self._whole = 0
        for entry, text in there.items():
            self._consume(_namespace_of(entry), 2 * len(entry) + len(text) + _ENTRY_OVERHEAD)

    def reserve(self, entry: str) -> bool:
        """Return whether there is room for a key, which it then takes."""
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
    """Return whose an entry is: a tenant's with an object of its own is its namespace's."""
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

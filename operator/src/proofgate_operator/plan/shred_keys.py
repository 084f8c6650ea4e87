"""Which tenants have a shred key, and which are to get one."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from proofgate_schema.counts import counted

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import Manifest, names
from proofgate_operator.build.shred_keys import shred_keys_entry
from proofgate_operator.plan.observed import Observed
from proofgate_operator.plan.ownership import Ownership, classify
from proofgate_operator.plan.problems import Fault, Problem

#: Characters that the entries of a Secret may take; it may have a mebibyte with everything else. The name of
#: each stands there twice, once among the fields that somebody manages.
_ROOM = 960 << 10
#: Of these, what tenants with objects of their own leave to the gateway's own list, which is twice what that
#: takes; and what those of one namespace may take, tenants that are gone among them.
_OF_THE_LIST = 64 << 10
_OF_A_NAMESPACE = (_ROOM - _OF_THE_LIST) // 4
#: What else an entry takes.
_BESIDE = 24
#: Base64 of a line.
_LINE = 60
#: Names that a message has.
_NAMED = 5


@dataclass(frozen=True, repr=False)
class ShredKeys:
    """`to_make` are entries that lack, of a Secret whose version is `version`, or of none. `waits` says that
    a tenant of the gateway's own list is among them: workers would refuse a file that names it. `left_out`
    are tenants of that list for whose keys there is no room, which is told by `no_room` and costs nobody
    else anything. `contents` are for digests alone."""

    to_make: tuple[str, ...] = ()
    version: str | None = None
    waits: bool = False
    problems: tuple[Problem, ...] = ()
    left_out: tuple[str, ...] = ()
    no_room: tuple[Problem, ...] = ()
    faults: tuple[Fault, ...] = ()
    contents: tuple[str, ...] = ()

    def served(self, gateway: Gateway) -> Gateway:
        """Return the gateway without the tenants that are left out."""
        if not self.left_out:
            return gateway
        tenants = tuple(tenant for tenant in gateway.spec.tenants if tenant.name not in self.left_out)
        return gateway.model_copy(update={"spec": gateway.spec.model_copy(update={"tenants": tenants})})


#: Where no tenant has any.
UNWANTED = ShredKeys()


def read_shred_keys(gateway: Gateway, seen: Observed) -> ShredKeys:
    """Return what is to become of the shred keys."""
    wanted = gateway.spec.ledger.shred_keys
    if wanted is None:
        return UNWANTED
    listed = [tenant.name for tenant in gateway.spec.tenants]
    if wanted.secret_ref is not None:
        return _brought(wanted.secret_ref.name, listed, seen)
    live = seen.child("Secret", names(gateway).shred_keys)
    if classify(gateway, live) in (Ownership.FOREIGN, Ownership.LEAVING):
        return ShredKeys(waits=True)
    there = _there(live)
    attached = [entry for name in sorted(seen.tenants.names) if (entry := shred_keys_entry(name))]
    room = _Room(there)
    lacking = [entry for entry in (*listed, *attached) if entry not in there]
    fitting = [entry for entry in lacking if room.takes(entry)]
    without = set(lacking) - set(fitting)
    left_out = tuple(name for name in listed if name in without)
    told = tuple(_no_room(names(gateway).shred_keys, left_out))
    # A provider that keeps the objects of one is nothing without it.
    kept = {provider.objects_of for provider in gateway.spec.providers} & set(left_out)
    return ShredKeys(
        to_make=tuple(fitting),
        version=live["metadata"].get("resourceVersion") if live else None,
        waits=live is None or bool(kept) or not there.keys() >= set(listed) - without,
        problems=told if kept else (),
        left_out=() if kept else left_out,
        no_room=() if kept else told,
        faults=tuple(_crowded(without - set(left_out))),
        contents=_contents(live),
    )


class _Room:
    """What is left of the Secret, and to whom."""

    def __init__(self, there: Mapping[str, str]) -> None:
        self._taken: Counter[str] = Counter()
        self._whole = 0
        for entry, text in there.items():
            self._take(_namespace(entry), 2 * len(entry) + len(text) + _BESIDE)

    def takes(self, entry: str) -> bool:
        """Return whether there is room for a key, which it then takes."""
        namespace, size = _namespace(entry), 2 * len(entry) + _LINE + _BESIDE
        if self._whole + size > _ROOM:
            return False
        if namespace:
            attached = self._whole - self._taken[""] + size
            if attached > _ROOM - _OF_THE_LIST or self._taken[namespace] + size > _OF_A_NAMESPACE:
                return False
        self._take(namespace, size)
        return True

    def _take(self, namespace: str, size: int) -> None:
        self._taken[namespace] += size
        self._whole += size


def _namespace(entry: str) -> str:
    """Return whose an entry is: a tenant's with an object of its own is its namespace's."""
    return entry[1:].partition("_")[0] if entry.startswith("_") else ""


def _no_room(secret: str, left_out: Sequence[str]) -> Iterator[Problem]:
    if left_out:
        yield Problem(
            "NoRoom",
            (
                f"Secret {secret} is full, so these tenants have no shred key and are not served: "
                f"{_some(left_out)}"
            ),
        )


def _crowded(without: Set[str]) -> Iterator[Fault]:
    if without:
        crowded = [namespace for namespace, _ in Counter(map(_namespace, sorted(without))).most_common()]
        message = (
            f"no shred key for {counted(len(without), 'tenant')}, because the Secret is full, or their "
            f"namespace has reached its limit: {_some(crowded)}"
        )
        yield Fault("spec.ledger.shredKeys", "NoRoom", message)


def _some(found: Sequence[str]) -> str:
    more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"{', '.join(found[:_NAMED])}{more}"


def _brought(name: str, listed: list[str], seen: Observed) -> ShredKeys:
    secret = seen.secrets.get(name)
    where = f"Secret {name}, named by spec.ledger.shredKeys.secretRef,"
    if secret is None:
        return ShredKeys(waits=True, problems=(Problem("SecretMissing", f"{where} does not exist"),))
    lacking = [tenant for tenant in listed if tenant not in _there(secret)]
    if lacking:
        told = f"{where} has no shred key of {', '.join(lacking)}"
        return ShredKeys(waits=True, problems=(Problem("SecretInvalid", told),))
    return ShredKeys(contents=_contents(secret))


def _there(secret: Manifest | None) -> dict[str, str]:
    data = (secret or {}).get("data") or {}
    return {name: text for name, text in data.items() if text}


def _contents(secret: Manifest | None) -> tuple[str, ...]:
    return tuple(part for pair in sorted(_there(secret).items()) for part in pair)

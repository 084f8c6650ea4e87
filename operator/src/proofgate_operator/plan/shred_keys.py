"""Which tenants have a shred key, and which are to get one."""

from dataclasses import dataclass
from itertools import accumulate

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.naming import Manifest, names
from proofgate_operator.build.shred_keys import shred_keys_entry
from proofgate_operator.plan.observed import Observed
from proofgate_operator.plan.ownership import Ownership, classify
from proofgate_operator.plan.problems import Fault, Problem

#: Characters that the entries of a Secret may take; it may have a mebibyte with everything else. The name of
#: each stands there twice, once among the fields that somebody manages.
_ROOM = 960 << 10
#: What else an entry takes.
_BESIDE = 24
#: Base64 of a line.
_LINE = 60


@dataclass(frozen=True, repr=False)
class ShredKeys:
    """`to_make` are entries that lack, of a Secret whose version is `version`, or of none. `waits` says that
    a tenant of the gateway's own list is among them: workers would refuse a file that names it. `contents`
    are for digests alone."""

    to_make: tuple[str, ...] = ()
    version: str | None = None
    waits: bool = False
    problems: tuple[Problem, ...] = ()
    faults: tuple[Fault, ...] = ()
    contents: tuple[str, ...] = ()


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
    lacking = [entry for entry in (*listed, *attached) if entry not in there]
    room = _ROOM - sum(2 * len(entry) + len(text) + _BESIDE for entry, text in there.items())
    taken = accumulate(2 * len(entry) + _LINE + _BESIDE for entry in lacking)
    fitting = [entry for entry, bytes_taken in zip(lacking, taken, strict=True) if bytes_taken <= room]
    faults: tuple[Fault, ...] = ()
    if len(fitting) < len(lacking):
        message = f"{len(lacking) - len(fitting)} tenants have no shred key, because the Secret is full"
        faults = (Fault("spec.ledger.shredKeys", "NoRoom", message),)
    return ShredKeys(
        to_make=tuple(fitting),
        version=live["metadata"].get("resourceVersion") if live else None,
        waits=live is None or not there.keys() >= set(listed),
        faults=faults,
        contents=_contents(live),
    )


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

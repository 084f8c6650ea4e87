"""Which keys are whose and until when, read from the tenants' Secrets. Only digests leave this module.

What is wrong with a Secret costs its tenant the entries that are wrong, and nobody else anything: whoever may
write one tenant's Secret must not keep another one's leaked key alive.
"""

import base64
import binascii
import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from proofgate_operator.api.access import Tenant
from proofgate_operator.api.fields import SecretRef
from proofgate_operator.api.types import Gateway
from proofgate_operator.build.config import KeyDigest
from proofgate_operator.build.naming import Manifest
from proofgate_operator.plan.problems import Fault

#: Below this a key could be guessed from its digest.
MIN_KEY_LENGTH = 20
#: Keys of all tenants together: their digests, and HAProxy's map of them, fit into one Secret of a mebibyte.
MAX_KEYS = 4096
#: Faults that are told of one tenant; it may have made them by the thousand.
_TOLD_FAULTS = 4
#: Entry of a tenant's Secret that holds digests instead of a key.
HASHES_ENTRY = "hashes"
#: A bearer token (RFC 6750, section 2.1): HAProxy and the workers read nothing else the same way.
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_DIGEST = re.compile(r"(?P<digest>[0-9a-f]{64})(\s+expires=(?P<expires>\S+))?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True, repr=False)
class TenantKeys:
    """The keys of every tenant that names a Secret, what is wrong with them, and what only looks wrong."""

    keys: Mapping[str, tuple[KeyDigest, ...]]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()


def entry(secret: Manifest, key: str) -> str | None:
    """Return one entry of a Secret as text; None if it is absent or not text."""
    encoded = (secret.get("data") or {}).get(key)
    if encoded is None:
        return None
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def read_tenant_keys(
    gateway: Gateway, secrets: Mapping[str, Manifest | None], holders: Mapping[str, str]
) -> TenantKeys:
    """Return each tenant's keys, and every fault found on the way.

    `holders` are the tenants by the digests of the keys that they have had until now: of two that claim one
    key, it stays with the one that has it, and without one nobody gets it.
    """
    claims: dict[str, dict[str, KeyDigest]] = {}
    faults: list[Fault] = []
    notes: list[str] = []
    named = [(tenant, ref) for tenant in gateway.spec.tenants if (ref := tenant.api_keys_secret_ref)]
    for tenant, reference in named:
        found = claims[tenant.name] = {}
        secret = secrets.get(reference.name)
        if secret is None:
            message = f"Secret {reference.name}, named by {_field(tenant)}.apiKeysSecretRef, does not exist"
            faults.append(Fault(_field(tenant), "SecretMissing", message))
            continue
        told = len(faults)
        for result in _keys_in(tenant, reference, secret):
            if isinstance(result, Fault):
                faults.append(result)
            elif found.setdefault(result.digest, result) != result:
                # The earlier end: one that was shortened must not be undone by a copy of the key.
                found[result.digest] = min(found[result.digest], result, key=_end)
                message = "holds one key twice with different times of expiry, and the earlier one counts"
                faults.append(_fault(tenant, f"{_where(tenant, reference)} {message}: remove one"))
        if len(faults) - told > _TOLD_FAULTS:
            message = f"{_where(tenant, reference)} has {len(faults) - told - _TOLD_FAULTS} more faults"
            faults[told + _TOLD_FAULTS :] = [_fault(tenant, message)]
        if not found and len(faults) == told:
            message = f"{_where(tenant, reference)} holds no key: the tenant is locked out"
            faults.append(Fault(_field(tenant), "NoKeys", message))
        notes += _idle_expiries(tenant, reference, secret)
    faults += _settle(claims, named, holders)
    faults += _bound(claims, named, holders)
    keys = {name: tuple(found[digest] for digest in sorted(found)) for name, found in claims.items()}
    return TenantKeys(keys, tuple(faults), tuple(notes))


def _settle(
    claims: dict[str, dict[str, KeyDigest]], named: list[tuple[Tenant, SecretRef]], holders: Mapping[str, str]
) -> Iterator[Fault]:
    """Leave every key to one tenant at most, and yield who does not get one."""
    claimants: dict[str, list[tuple[Tenant, SecretRef]]] = {}
    for tenant, reference in named:
        for digest in claims[tenant.name]:
            claimants.setdefault(digest, []).append((tenant, reference))
    for digest, found in claimants.items():
        if len(found) == 1:
            continue
        for tenant, reference in found:
            if holders.get(digest) == tenant.name:
                continue
            del claims[tenant.name][digest]
            others = " and ".join(_where(*other) for other in found if other[0] is not tenant)
            message = (
                f"{_where(tenant, reference)} and {others} hold the same key: a key belongs to one tenant"
            )
            yield Fault(_field(tenant), "KeyShared", message)


def _bound(
    claims: dict[str, dict[str, KeyDigest]], named: list[tuple[Tenant, SecretRef]], holders: Mapping[str, str]
) -> Iterator[Fault]:
    """Leave every tenant its share of the keys that can be held, and yield who wanted more.

    Without a bound one tenant's Secret could fill the one of all digests, and nobody's key could be revoked.
    """
    most = MAX_KEYS // max(len(named), 1)
    for tenant, reference in named:
        found = claims[tenant.name]
        if len(found) > most:
            kept = sorted(found, key=lambda digest: (holders.get(digest) != tenant.name, digest))[:most]
            message = (
                f"holds {len(found)} keys, and {most} of them are let in: so many a tenant may have here"
            )
            claims[tenant.name] = {digest: found[digest] for digest in kept}
            yield Fault(_field(tenant), "TooManyKeys", f"{_where(tenant, reference)} {message}")


def _end(key: KeyDigest) -> float:
    """Return when a key expires, in seconds since 1970."""
    return datetime.fromisoformat(key.expires).timestamp() if key.expires else math.inf


def _field(tenant: Tenant) -> str:
    return f"spec.tenants[{tenant.name}]"


def _where(tenant: Tenant, reference: SecretRef) -> str:
    return f"Secret {reference.name} of tenant {tenant.name}"


def _fault(tenant: Tenant, message: str) -> Fault:
    return Fault(_field(tenant), "SecretInvalid", message)


def _idle_expiries(tenant: Tenant, reference: SecretRef, secret: Manifest) -> Iterator[str]:
    """Yield what to say of times for entries that are not there.

    No problem: taking a key out of its Secret has to work at once, whatever the manifest still says of it.
    """
    for name in sorted(set(tenant.api_key_expiry or {}) - set(secret.get("data") or {})):
        yield (
            f"spec.tenants[{tenant.name}].apiKeyExpiry names {name}, which is no entry of"
            f" Secret {reference.name}"
        )


def _keys_in(tenant: Tenant, reference: SecretRef, secret: Manifest) -> Iterator[KeyDigest | Fault]:
    """Yield every key in a tenant's Secret, or why an entry holds none."""
    expiry = tenant.api_key_expiry or {}
    for name in sorted(secret.get("data") or {}):
        where = f"{_where(tenant, reference)}: entry {name}"
        text, expires = entry(secret, name), expiry.get(name)
        if expires is not None and not _is_time(expires):
            field = f"{_field(tenant)}.apiKeyExpiry.{name}"
            message = f"{field} is no time, for example 2026-12-31T00:00:00Z: the entry is left out"
            yield Fault(_field(tenant), "SpecInvalid", message)
        elif text is None:
            yield _fault(tenant, f"{where} is not text")
        elif name == HASHES_ENTRY:
            for result in _digests_in(text, expires):
                yield _fault(tenant, f"{where}, {result}") if isinstance(result, str) else result
        elif fault := _key_fault(text):
            yield _fault(tenant, f"{where} {fault}")
        else:
            yield KeyDigest(hashlib.sha256(text.encode()).hexdigest(), expires)


def _digests_in(text: str, expires: str | None) -> Iterator[KeyDigest | str]:
    """Yield the keys of an entry of digests, or what is wrong with a line."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        match = _DIGEST.fullmatch(line.strip())
        if match is None:
            yield (
                f"line {number} is not a SHA-256 digest in lower-case hexadecimal, alone or with its"
                " expires=<time>"
            )
        elif match["expires"] and not _is_time(match["expires"]):
            yield f"line {number} has no time after expires=, for example 2026-12-31T00:00:00Z"
        else:
            yield KeyDigest(match["digest"], match["expires"] or expires)


def _key_fault(text: str) -> str | None:
    """Return why a text is no API key; None if it is one."""
    if any(character.isspace() for character in text):
        return "contains whitespace; a line end counts"
    if len(text) < MIN_KEY_LENGTH:
        return f"is shorter than {MIN_KEY_LENGTH} characters"
    if not _TOKEN.fullmatch(text):
        return "has a character that a bearer token cannot have (RFC 6750)"
    return None


def _is_time(text: str) -> bool:
    """Return whether a text is a time of RFC 3339 (section 5.6) after 1970; the calendar counts."""
    try:
        return bool(_TIME.fullmatch(text)) and datetime.fromisoformat(text).timestamp() >= 0
    except (ValueError, OverflowError):
        return False

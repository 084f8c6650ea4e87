"""Which keys are whose and until when, read from the tenants' Secrets. Only digests leave this module."""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from proofgate_operator.api.access import Tenant
from proofgate_operator.api.fields import SecretRef
from proofgate_operator.api.types import Gateway
from proofgate_operator.build.config import KeyDigest
from proofgate_operator.build.naming import Manifest
from proofgate_operator.plan.problems import Problem

#: Below this a key could be guessed from its digest.
MIN_KEY_LENGTH = 20
#: Entry of a tenant's Secret that holds digests instead of a key.
HASHES_ENTRY = "hashes"
#: A bearer token (RFC 6750, section 2.1): HAProxy and the workers read nothing else the same way.
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_DIGEST = re.compile(r"(?P<digest>[0-9a-f]{64})(\s+expires=(?P<expires>\S+))?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True, repr=False)
class TenantKeys:
    """The keys of every tenant that has any, what is wrong with them, and what only looks wrong."""

    keys: Mapping[str, tuple[KeyDigest, ...]]
    problems: tuple[Problem, ...]
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


def read_tenant_keys(gateway: Gateway, secrets: Mapping[str, Manifest | None]) -> TenantKeys:
    """Return each tenant's keys, and every problem found on the way."""
    keys: dict[str, tuple[KeyDigest, ...]] = {}
    problems: list[Problem] = []
    notes: list[str] = []
    owner_of: dict[str, tuple[Tenant, SecretRef]] = {}
    for tenant in gateway.spec.tenants:
        reference = tenant.api_keys_secret_ref
        if reference is None:
            continue
        secret = secrets.get(reference.name)
        if secret is None:
            message = f"named by spec.tenants[{tenant.name}].apiKeysSecretRef, does not exist"
            problems.append(Problem("SecretMissing", f"Secret {reference.name}, {message}"))
            continue
        found: dict[str, KeyDigest] = {}
        faults: list[Problem] = []
        for result in _keys_in(tenant, reference, secret):
            if isinstance(result, Problem):
                faults.append(result)
                continue
            owner, owners_secret = owner_of.setdefault(result.digest, (tenant, reference))
            where = f"Secret {reference.name} of tenant {tenant.name}"
            if owner is not tenant:
                others = f"Secret {owners_secret.name} of tenant {owner.name}"
                faults.append(
                    Problem(
                        "KeyShared", f"{where} and {others} hold the same key: a key belongs to one tenant"
                    )
                )
            elif found.setdefault(result.digest, result) != result:
                message = "holds one key twice with different times of expiry: remove one"
                faults.append(Problem("SecretInvalid", f"{where} {message}"))
        if not found and not faults:
            message = f"Secret {reference.name} of tenant {tenant.name} holds no key"
            faults.append(Problem("SecretInvalid", message))
        problems += faults
        notes += _idle_expiries(tenant, reference, secret)
        keys[tenant.name] = tuple(found[digest] for digest in sorted(found))
    return TenantKeys(keys, tuple(problems), tuple(notes))


def _idle_expiries(tenant: Tenant, reference: SecretRef, secret: Manifest) -> Iterator[str]:
    """Yield what to say of times for entries that are not there.

    No problem: taking a key out of its Secret has to work at once, whatever the manifest still says of it.
    """
    for name in sorted(set(tenant.api_key_expiry or {}) - set(secret.get("data") or {})):
        yield (
            f"spec.tenants[{tenant.name}].apiKeyExpiry names {name}, which is no entry of"
            f" Secret {reference.name}"
        )


def _keys_in(tenant: Tenant, reference: SecretRef, secret: Manifest) -> Iterator[KeyDigest | Problem]:
    """Yield every key in a tenant's Secret, or why an entry holds none."""
    expiry = dict(tenant.api_key_expiry or {})
    for name in sorted(expiry):
        if not _is_time(expiry[name]):
            where = f"spec.tenants[{tenant.name}].apiKeyExpiry.{name}"
            yield Problem("SpecInvalid", f"{where} is no time, for example 2026-12-31T00:00:00Z")
            del expiry[name]
    for name in sorted(secret.get("data") or {}):
        where = f"Secret {reference.name} of tenant {tenant.name}: entry {name}"
        text = entry(secret, name)
        if text is None:
            yield Problem("SecretInvalid", f"{where} is not text")
        elif name == HASHES_ENTRY:
            yield from _digests_in(text, where, expiry.get(name))
        elif fault := _key_fault(text):
            yield Problem("SecretInvalid", f"{where} {fault}")
        else:
            yield KeyDigest(hashlib.sha256(text.encode()).hexdigest(), expiry.get(name))


def _digests_in(text: str, where: str, expires: str | None) -> Iterator[KeyDigest | Problem]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        match = _DIGEST.fullmatch(line.strip())
        if match is None:
            message = "is not a SHA-256 digest in lower-case hexadecimal, alone or with its expires=<time>"
            yield Problem("SecretInvalid", f"{where}, line {number} {message}")
        elif match["expires"] and not _is_time(match["expires"]):
            message = "has no time after expires=, for example 2026-12-31T00:00:00Z"
            yield Problem("SecretInvalid", f"{where}, line {number} {message}")
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

"""Which keys are whose, read from the tenants' Secrets. Only digests leave this module."""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from proofgate_operator.api.types import Gateway, Tenant
from proofgate_operator.build.naming import Manifest

#: Below this a key could be guessed from its digest.
MIN_KEY_LENGTH = 20
#: Entry of a tenant's Secret that holds digests instead of a key.
HASHES_ENTRY = "hashes"
#: A bearer token (RFC 6750, section 2.1): HAProxy and the workers read nothing else the same way.
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Problem:
    """Why a configuration is not valid: a CamelCase reason, and a sentence that names the field or object."""

    reason: str
    message: str


def entry(secret: Manifest, key: str) -> str | None:
    """Return one entry of a Secret as text; None if it is absent or not text."""
    encoded = (secret.get("data") or {}).get(key)
    if encoded is None:
        return None
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _digests(tenant: Tenant, secret: Manifest) -> Iterator[str | Problem]:
    """Yield the digest of every key in a tenant's Secret, or why an entry holds none."""
    name = tenant.api_keys_secret_ref.name
    for key in sorted(secret.get("data") or {}):
        where = f"Secret {name} of tenant {tenant.name}: entry {key}"
        text = entry(secret, key)
        if text is None:
            yield Problem("SecretInvalid", f"{where} is not text")
        elif key == HASHES_ENTRY:
            for number, line in enumerate(text.split(), start=1):
                if _DIGEST.fullmatch(line):
                    yield line
                else:
                    yield Problem(
                        "SecretInvalid",
                        f"{where}, line {number} is not a SHA-256 digest in lower-case hexadecimal",
                    )
        elif any(character.isspace() for character in text):
            yield Problem("SecretInvalid", f"{where} contains whitespace; a line end counts")
        elif len(text) < MIN_KEY_LENGTH:
            yield Problem("SecretInvalid", f"{where} is shorter than {MIN_KEY_LENGTH} characters")
        elif not _TOKEN.fullmatch(text):
            yield Problem(
                "SecretInvalid", f"{where} has a character that a bearer token cannot have (RFC 6750)"
            )
        else:
            yield hashlib.sha256(text.encode()).hexdigest()


def key_hashes(
    gateway: Gateway, secrets: Mapping[str, Manifest | None]
) -> tuple[dict[str, tuple[str, ...]], tuple[Problem, ...]]:
    """Return each tenant's digests, and every problem found on the way."""
    hashes: dict[str, tuple[str, ...]] = {}
    problems: list[Problem] = []
    owner_of: dict[str, Tenant] = {}
    for tenant in gateway.spec.tenants:
        name = tenant.api_keys_secret_ref.name
        secret = secrets.get(name)
        if secret is None:
            problems.append(
                Problem(
                    "SecretMissing",
                    f"Secret {name}, named by spec.tenants[{tenant.name}].apiKeysSecretRef, does not exist",
                )
            )
            continue
        found: list[str] = []
        faults: list[Problem] = []
        for result in _digests(tenant, secret):
            if isinstance(result, Problem):
                faults.append(result)
                continue
            owner = owner_of.setdefault(result, tenant)
            if owner is not tenant:
                faults.append(
                    Problem(
                        "KeyShared",
                        f"Secret {name} of tenant {tenant.name} and Secret {owner.api_keys_secret_ref.name}"
                        f" of tenant {owner.name} hold the same key: a key belongs to one tenant",
                    )
                )
            found.append(result)
        if not found and not faults:
            faults.append(Problem("SecretInvalid", f"Secret {name} of tenant {tenant.name} holds no key"))
        problems.extend(faults)
        hashes[tenant.name] = tuple(sorted(set(found)))
    return hashes, tuple(problems)

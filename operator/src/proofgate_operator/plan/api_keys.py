"""Reads a tenant's list of API keys from the Secrets that it names. Only digests leave this module.

A fault of one key affects that key alone: the key is not accepted.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from proofgate_operator.api.access import ApiKey
from proofgate_operator.build.naming import Manifest
from proofgate_operator.build.tenant_keys import KeyDigest
from proofgate_operator.build.well_known_keys import WELL_KNOWN_MESSAGE, is_well_known
from proofgate_operator.plan.unreadable_resources import UnreadableResource

#: Minimum length: a shorter key could be guessed from its digest.
MIN_KEY_LENGTH = 20
#: The characters of a bearer token (RFC 6750, section 2.1): HAProxy and the workers would read others
#: differently.
_BEARER_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True)
class KeyFault:
    """Why an item is not a valid key: its name, a CamelCase reason, and a message without any part of the
    key."""

    name: str
    reason: str
    message: str


@dataclass(frozen=True, repr=False)
class KeyList:
    """The valid keys of one tenant without duplicates, sorted by digest, and the faults of the other keys."""

    keys: tuple[KeyDigest, ...]
    faults: tuple[KeyFault, ...]


def entry(secret: Manifest, key: str) -> str | None:
    """Return one entry of a Secret as text; None if it is missing or not text."""
    encoded = (secret.get("data") or {}).get(key)
    if encoded is None:
        return None
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def read_keys(
    field: str,
    listed: Sequence[ApiKey],
    secrets: Mapping[str, Manifest | None],
    unread: Mapping[str, UnreadableResource] = MappingProxyType({}),
    held: Mapping[str, str] = MappingProxyType({}),
) -> KeyList:
    """Return the keys of a list at the field path `field`; `secrets` are the Secrets that it names.

    `unread` are the named Secrets that could not be read. `held` has the last known digests by item name: an
    item of an unread Secret keeps its last known digest.
    """
    found: dict[str, KeyDigest] = {}
    faults: list[KeyFault] = []
    #: Each fault is reported once, even if several keys have it.
    missing: set[str] = set()
    for item in listed:
        where = f"{field}[{item.name}]"
        name = item.secret_ref.name if item.secret_ref else None
        blind = unread.get(name) if name else None
        if name is not None and secrets.get(name) is None:
            if name not in missing:
                named = f"Secret {name}, named by {where}.secretRef"
                if blind is None:
                    faults.append(KeyFault(item.name, "SecretMissing", f"{named}, does not exist"))
                else:
                    faults.append(KeyFault(item.name, blind.reason, f"{named}: {blind.message}"))
            missing.add(name)
        result = _previous_key(where, item, held) if blind else _read(where, item, secrets)
        if result is None:
            continue
        if isinstance(result, KeyFault):
            faults.append(result)
            continue
        first = found.setdefault(result.digest, result)
        if first is not result:
            # The earlier expiry applies: a copy of a key must not undo a shortened expiry.
            found[result.digest] = min(first, result, key=lambda key: key.expires_at)
            message = f"{where} is the same key as {first.name}: the earlier expiry applies"
            faults.append(KeyFault(item.name, "KeyTwice", message))
    return KeyList(tuple(found[digest] for digest in sorted(found)), tuple(faults))


def _previous_key(where: str, item: ApiKey, held: Mapping[str, str]) -> KeyDigest | KeyFault | None:
    """Return the last known state of an item; None if it was not a key."""
    digest = held.get(item.name)
    fault = _end_fault(where, item)
    return fault if fault or digest is None else KeyDigest(digest, item.not_after, item.name)


def _end_fault(where: str, item: ApiKey) -> KeyFault | None:
    if item.not_after is None or _is_time(item.not_after):
        return None
    message = f"{where}.notAfter is not a time such as 2026-12-31T00:00:00Z"
    return KeyFault(item.name, "SpecInvalid", message)


def _read(where: str, item: ApiKey, secrets: Mapping[str, Manifest | None]) -> KeyDigest | KeyFault | None:
    """Return an item's key or fault; None if its Secret does not exist."""
    if item.secret_ref is not None and secrets.get(item.secret_ref.name) is None:
        return None
    wrong_end = _end_fault(where, item)
    if wrong_end is not None:
        return wrong_end
    if item.sha256 is not None:
        if is_well_known(item.sha256):
            return KeyFault(item.name, "KeyWellKnown", f"{where}.sha256 is {WELL_KNOWN_MESSAGE}")
        return KeyDigest(item.sha256, item.not_after, item.name)
    reference = item.secret_ref
    if reference is None:
        return KeyFault(item.name, "SpecInvalid", f"{where} has neither secretRef nor sha256")
    named = f"Secret {reference.name}, named by {where}.secretRef,"
    text = entry(secrets.get(reference.name) or {}, reference.key)
    if text is None:
        return KeyFault(item.name, "SecretInvalid", f"{named} has no text under {reference.key}")
    if fault := _text_fault(text):
        return KeyFault(item.name, "SecretInvalid", f"{named} has under {reference.key} {fault}")
    return KeyDigest(hashlib.sha256(text.encode()).hexdigest(), item.not_after, item.name)


def _text_fault(text: str) -> str | None:
    """Return why a text is not a valid API key; None if it is valid."""
    if any(character.isspace() for character in text):
        return "a text that contains whitespace or a line end"
    if len(text) < MIN_KEY_LENGTH:
        return f"a text shorter than {MIN_KEY_LENGTH} characters"
    if not _BEARER_TOKEN.fullmatch(text):
        return "a character that a bearer token cannot have (RFC 6750)"
    return None


def _is_time(text: str) -> bool:
    """Return whether a text is a valid RFC 3339 time (section 5.6) after 1970, including the calendar
    date."""
    try:
        return bool(_TIME.fullmatch(text)) and datetime.fromisoformat(text).timestamp() >= 0
    except (ValueError, OverflowError):
        return False

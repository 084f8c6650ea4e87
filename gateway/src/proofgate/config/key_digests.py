"""The API keys of tenants: digests from the configuration and from files, with one owner and expiry each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from proofgate_schema.fields import Name
from pydantic import TypeAdapter, ValidationError

from proofgate.config.access import Tenant
from proofgate.config.document import FieldPath
from proofgate.config.fields import unix_seconds
from proofgate.config.files import ReferencedFiles
from proofgate.config.problems import Findings
from proofgate.config.settings import Settings
from proofgate.well_known_keys import WELL_KNOWN_MESSAGE, is_well_known

_HASH = re.compile(r"[0-9a-f]{64}")
_NAME = TypeAdapter[str](Name)
#: The text before the name of a key in the comment of its line.
_NAME_PREFIX = "name="
_NOT_A_HASH = "not the SHA-256 of an API key in lower-case hexadecimal"


@dataclass(frozen=True, order=True)
class KeyDigest:
    """The digest of an API key. `expires_at` is in seconds since 1970; None: the key never expires. `name` is
    for records; None for a key without a name."""

    hash: str
    expires_at: int | None
    name: str | None = None


def tenant_keys(
    settings: Settings, files: ReferencedFiles, findings: Findings
) -> dict[str, tuple[KeyDigest, ...]]:
    """The keys of every tenant by its name, sorted by digest."""
    owners: dict[str, str] = {}
    keys: dict[str, tuple[KeyDigest, ...]] = {}
    for position, tenant in enumerate(settings.tenants):
        own: dict[str, KeyDigest] = {}
        for path, key in _keys_of(("tenants", position), tenant, files, findings):
            owner = owners.setdefault(key.hash, tenant.name)
            if owner != tenant.name:
                message = (
                    f"an API key of {tenant.name} also belongs to {owner}: a key can belong to only "
                    "one tenant"
                )
                findings.report("config_shared_key", path, message)
                continue
            first = own.setdefault(key.hash, key)
            if first.expires_at != key.expires_at:
                message = f"a key of {tenant.name} is given twice with different expiry dates: remove one"
                findings.report("config_two_expiries", path, message)
            elif None not in (first.name, key.name) and first.name != key.name:
                message = f"a key of {tenant.name} is given twice with different names: remove one"
                findings.report("config_two_names", path, message)
            elif first.name is None:
                own[key.hash] = key
        keys[tenant.name] = tuple(sorted(own.values(), key=lambda key: key.hash))
        if not (tenant.key_hashes or tenant.keys or tenant.key_hashes_file is not None or settings.jwt):
            message = (
                "the tenant has no API key: set keys, keyHashes or keyHashesFile (or jwt at the top level)"
            )
            findings.report("config_no_keys", ("tenants", position), message)
    return keys


def _keys_of(
    where: FieldPath, tenant: Tenant, files: ReferencedFiles, findings: Findings
) -> Iterator[tuple[FieldPath, KeyDigest]]:
    given: list[tuple[FieldPath, str, int | None, str | None]] = []
    for place, text in enumerate(tenant.key_hashes):
        given.append(((*where, "keyHashes", place), text, None, None))
    for place, key in enumerate(tenant.keys):
        given.append(((*where, "keys", place, "hash"), key.hash, key.expires_at, key.name))
    for path, text, expires_at, name in given:
        if is_well_known(text):
            findings.report("config_well_known_key", path, WELL_KNOWN_MESSAGE)
        elif _HASH.fullmatch(text):
            yield path, KeyDigest(text, expires_at, name)
        else:
            findings.report("config_bad_hash", path, f"{_NOT_A_HASH}: create it with `proofgate keys hash`")
    if tenant.key_hashes_file is not None:
        path = (*where, "keyHashesFile")
        known = len(findings.problems)
        text = files.read_text(path, tenant.key_hashes_file)
        findings.downgrade_to_warnings(known, f"tenant {tenant.name} accepts no key from this file")
        for number, line in enumerate(text.splitlines(), start=1):
            content, _, comment = line.partition("#")
            entry = content.split()
            try:
                if entry:
                    yield path, replace(_read_line(entry), name=_key_name_from_comment(comment))
            except ValueError as error:
                message = f"line {number} of {tenant.key_hashes_file} is {error}"
                findings.report("config_bad_hash", path, message)


def _key_name_from_comment(comment: str) -> str | None:
    """The key's name, if the comment starts with one. Names are in comments because older workers also read
    the file."""
    first = next(iter(comment.split()), "")
    if not first.startswith(_NAME_PREFIX):
        return None
    with suppress(ValidationError):
        return _NAME.validate_python(first.removeprefix(_NAME_PREFIX))
    return None


def _read_line(entry: list[str]) -> KeyDigest:
    """Parses `<hash>` or `<hash> expires=<RFC 3339>`. Raises ValueError, which repeats nothing of the
    line."""
    digest, *rest = entry
    if not _HASH.fullmatch(digest):
        raise ValueError(_NOT_A_HASH)
    if is_well_known(digest):
        raise ValueError(WELL_KNOWN_MESSAGE)
    if not rest:
        return KeyDigest(digest, None)
    name, _, date = rest[0].partition("=")
    if len(rest) > 1 or name != "expires":
        raise ValueError("not a hash, alone or followed by expires=2026-12-31T00:00:00Z")
    try:
        return KeyDigest(digest, unix_seconds(date))
    except ValueError as error:
        raise ValueError(f"not usable: invalid expiry date: {error}") from None

"""Validates the readers of the auditor's index, the file of `proofgate audit run --readers`, before an
invalid file replaces a valid one.

The auditor's own check is authoritative, and refuses everything that is refused here. Messages quote nothing
from the file, because it may contain a key instead of its digest.
"""

import json
import re
from datetime import UTC, datetime
from typing import Any

from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build.gateway_secrets import encode_data
from proofgate_operator.build.naming import Manifest, child_manifest, names
from proofgate_operator.build.well_known_keys import WELL_KNOWN_MESSAGE, is_well_known

READERS_FILE = "readers.json"
#: The maximum size: the auditor's limit, which a Secret can also hold.
_MAX_BYTES = 1 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGEST = re.compile(r"[0-9a-f]{64}")


class InvalidReaders(ValueError):
    """A text is not a valid file of readers."""


def check(text: str) -> None:
    """Raise `InvalidReaders` if a text is not a valid file of readers."""
    if len(text.encode()) > _MAX_BYTES:
        raise InvalidReaders(f"it is larger than {_MAX_BYTES} bytes")
    try:
        document = json.loads(text, object_pairs_hook=_reject_duplicates)
    except _DuplicateKey:
        raise InvalidReaders("a name is repeated in an object") from None
    except (ValueError, RecursionError):
        raise InvalidReaders("it is not a JSON object of readers") from None
    if not isinstance(document, dict):
        raise InvalidReaders("it is not a JSON object of readers")
    for number, (digest, entry) in enumerate(document.items(), 1):
        if not _DIGEST.fullmatch(digest):
            raise InvalidReaders(
                f"the name of reader {number} is not a SHA-256 in 64 lower-case "
                "hexadecimal digits: `proofgate keys hash` prints the digest of a key"
            )
        if is_well_known(digest):
            raise InvalidReaders(f"the name of reader {number} is {WELL_KNOWN_MESSAGE}")
        if not _is_reader(entry):
            raise InvalidReaders(
                f'reader {number} must be {{"name": …, "tenant": …}} or {{"name": …, "all": true}},'
                ' optionally with "notAfter": a day or a time such as 2027-01-31'
            )


def secret(gateway: Gateway, text: str) -> Manifest:
    """Return the Secret that the auditor mounts, with the last valid readers."""
    head = child_manifest(gateway, "v1", "Secret", names(gateway).auditor, "auditor")
    return {**head, "type": "Opaque", "data": encode_data({READERS_FILE: text})}


class _DuplicateKey(ValueError):
    pass


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _DuplicateKey
    return found


def _is_reader(entry: object) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        return False
    if "notAfter" in entry and not _is_time(entry["notAfter"]):
        return False
    names = entry.keys() - {"notAfter"}
    if names == {"name", "all"}:
        return entry["all"] is True
    tenant = entry.get("tenant")
    return names == {"name", "tenant"} and isinstance(tenant, str) and bool(tenant)


def _is_time(value: object) -> bool:
    """Return whether this is an ISO 8601 day or time from 1970 on, as the auditor parses it."""
    if not isinstance(value, str):
        return False
    try:
        read = datetime.fromisoformat(value)
    except ValueError:
        return False
    return (read if read.tzinfo is not None else read.replace(tzinfo=UTC)) >= _EPOCH

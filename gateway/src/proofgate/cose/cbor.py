"""An encoder of deterministic CBOR (RFC 8949, section 4.2.1) for the parts of COSE messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_NULL = b"\xf6"
_MAX_UINT64 = (1 << 64) - 1


@dataclass(frozen=True)
class Tagged:
    """A value with a tag (RFC 8949, section 3.4)."""

    tag: int
    value: Value


Value = int | bytes | str | Sequence["Value"] | Mapping[int, "Value"] | Tagged | None


def encode(value: Value) -> bytes:
    """Returns the deterministic encoding of a value. Raises ValueError for an integer of more than 64
    bits."""
    match value:
        case None:
            return _NULL
        case int():
            return _head(0, value) if value >= 0 else _head(1, -1 - value)
        case bytes():
            return _head(2, len(value)) + value
        case str():
            text = value.encode()
            return _head(3, len(text)) + text
        case Tagged():
            return _head(6, value.tag) + encode(value.value)
        case Mapping():
            entries = sorted((encode(label), encode(of_it)) for label, of_it in value.items())
            return _head(5, len(entries)) + b"".join(label + of_it for label, of_it in entries)
        case _:
            return _head(4, len(value)) + b"".join(map(encode, value))


def _head(kind: int, argument: int) -> bytes:
    if argument > _MAX_UINT64:
        raise ValueError("an integer of CBOR has at most 64 bits")
    if argument < 24:
        return bytes([kind << 5 | argument])
    size = next(size for size in (1, 2, 4, 8) if argument < 1 << 8 * size)
    return bytes([kind << 5 | 23 + size.bit_length()]) + argument.to_bytes(size, "big")

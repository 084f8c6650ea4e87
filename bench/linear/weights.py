"""The file that holds the weights of the linear score, as `rust-core/crates/policy/src/linear.rs` reads it.

| bytes | what |
|---|---|
| 8 | `PGLINEAR` |
| 4 | version of the format, 1 |
| 4 | bits of a bucket's number, 18 |
| 4 | bias |
| 4 | the score that half a percent of honest texts reach |
| 4 | the score that one percent reaches |
| 4 | how many units are 1.0, for people |
| 32 | SHA-256 of the texts that the weights were learned from |
| 2^18 | weights, a signed byte each |

Numbers are signed, of 32 bits, little end first.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from pathlib import Path

from bench.linear.words import BUCKET_BITS, BUCKETS
from bench.scoring.rules import CRATE

PATH = CRATE / "scores" / "instruction-likeness.bin"
MAGIC = b"PGLINEAR"
VERSION = 1
_HEADER = struct.Struct("<8s6i32s")


@dataclass(frozen=True)
class Weights:
    """A linear score: its weights by buckets, and from which score on a text is flagged."""

    values: array[int]
    bias: int
    half_percent: int
    one_percent: int
    scale: int
    sets: bytes

    def write(self, path: Path) -> None:
        """Writes the file."""
        header = _HEADER.pack(
            MAGIC, VERSION, BUCKET_BITS, self.bias, self.half_percent, self.one_percent, self.scale, self.sets
        )
        path.write_bytes(header + self.values.tobytes())

    @classmethod
    def read(cls, path: Path) -> Weights:
        """Reads the file. Raises ValueError if it is none."""
        content = path.read_bytes()
        magic, version, bits, bias, half, one, scale, sets = _HEADER.unpack_from(content)
        values = array("b", content[_HEADER.size :])
        if (magic, version, bits, len(values)) != (MAGIC, VERSION, BUCKET_BITS, BUCKETS):
            raise ValueError(f"{path} holds no weights of version {VERSION}")
        return cls(values, bias, half, one, scale, sets)

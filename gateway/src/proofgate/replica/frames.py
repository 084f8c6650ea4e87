"""Finds the complete frames of the expected records in the bytes of a segment.

The layout is that of `rust-core/crates/evidence/src/frame.rs`. This only finds the bounds of records. The
readers of a copy verify them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

#: Bytes of the header of a segment, which contains the number of the first record.
SEGMENT_HEADER_BYTES = 128
_FIRST_RECORD = struct.Struct("<40xQ")
#: Header of a frame: length of the payload, type, flags, version, number of the record.
_HEADER_LAYOUT = struct.Struct("<IBBHQ")
_HEADER_BYTES = 32
_FOOTER_BYTES = 24
#: First bytes of a seal; records are always written in this form.
_SEAL_PREFIX = b'{"v":1,"kind":"seal",'
#: Limit for the bytes of a record (`MAX_RECORD`); every record is shorter.
_MAX_PAYLOAD_BYTES = 65_535
MAX_FRAME_BYTES = _HEADER_BYTES + _MAX_PAYLOAD_BYTES + 1 + _FOOTER_BYTES


@dataclass(frozen=True)
class CompleteFrames:
    """The complete frames in a content: their total bytes, the number of the next record, and the offset of
    the last frame."""

    length: int
    next_record: int
    last_offset: int = 0


def first_record(header: bytes) -> int | None:
    """Returns the number of the first record of a segment; None if the segment has no header yet."""
    if len(header) < SEGMENT_HEADER_BYTES or not any(header):
        return None
    return int(_FIRST_RECORD.unpack_from(header)[0])


def complete_frames(content: bytes, records: int, end: int) -> CompleteFrames:
    """Finds the complete frames at the start of `content`, for the records from `records` to `end`
    (exclusive)."""
    at = last = 0
    while records < end and at + _HEADER_BYTES <= len(content):
        length, *_, number = _HEADER_LAYOUT.unpack_from(content, at)
        frame = _HEADER_BYTES + (length + 7) // 8 * 8 + _FOOTER_BYTES
        if not 0 < length <= _MAX_PAYLOAD_BYTES or number != records or at + frame > len(content):
            break
        if content[at + frame - 4 : at + frame] != content[at : at + 4]:
            break
        last, at = at, at + frame
        records += 1
    return CompleteFrames(at, records, last)


def is_seal(content: bytes, frame: int) -> bool:
    """Whether the record in the frame at offset `frame` is a seal, which ends its log."""
    return content.startswith(_SEAL_PREFIX, frame + _HEADER_BYTES)

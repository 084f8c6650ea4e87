//! The storage format of a record and of a segment's header. All numbers are little-endian.
//!
//! ```text
//! frame, 8-aligned:  len u32 | type u8 | flags u8 | version u16 | seq u64 | durable u64 | prev_crc u32 | hdr_crc u32
//!                    | payload | zeros to 8 | tag [16] | payload_crc u32 | len u32
//! segment header:    magic [8] | version u32 | reserved u32 | incarnation [16] | ordinal u64 | first seq u64
//!                    | origin SHA-256 [32] | reserved [44] | crc u32                                 128 bytes
//! ```
//!
//! Both CRC32Cs of a frame also cover the incarnation, the segment's ordinal and the record number,
//! so that recycled, misplaced or embedded bytes do not verify. `durable` is the number of records
//! known to be synced when the frame was created. From this number in a frame after a hole, a
//! reader can see whether a crash could have caused the hole. `prev_crc` is the payload CRC of the
//! previous record, which may be in another segment. For record 0, it is the CRC of the segment
//! header.
//!
//! `tag` authenticates all bytes before it in the frame to holders of the signing key. Other
//! readers cannot verify the tag. The payload CRC covers the tag.

use ulid::Ulid;

/// Bytes of a segment's header.
pub const SEGMENT_HEADER_LEN: usize = 128;
/// Bytes of a frame before its payload.
pub const FRAME_HEADER_LEN: usize = 32;
/// Bytes of a frame's tag.
pub const FRAME_TAG_LEN: usize = 16;
/// Bytes of a frame after its padded payload.
pub const FRAME_FOOTER_LEN: usize = FRAME_TAG_LEN + 8;

/// A tag that authenticates a frame to holders of the signing key.
pub type FrameTag = [u8; FRAME_TAG_LEN];

const MAGIC: [u8; 8] = *b"PROOFGT\x01";
const VERSION: u16 = 2;
const TYPE_RECORD: u8 = 1;

/// Returns the number of bytes that a record of `record_len` bytes takes in a segment.
#[must_use]
pub const fn frame_len(record_len: usize) -> u64 {
    (FRAME_HEADER_LEN + record_len.next_multiple_of(8) + FRAME_FOOTER_LEN) as u64
}

/// The seed of a segment's CRCs, with which bytes verify only at their own position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentCrc {
    /// The running CRC over incarnation and ordinal.
    seed: u32,
}

impl SegmentCrc {
    /// Returns the seed for segment `ordinal` of an incarnation.
    #[must_use]
    pub fn new(incarnation: Ulid, ordinal: u64) -> Self {
        let seed = crc32c::crc32c(&incarnation.to_bytes());
        Self {
            seed: crc32c::crc32c_append(seed, &ordinal.to_le_bytes()),
        }
    }

    fn crc(self, seq: u64, bytes: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c_append(self.seed, &seq.to_le_bytes()), bytes)
    }
}

/// The header at the start of every segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The incarnation that the segment belongs to.
    pub incarnation: Ulid,
    /// 0-based number of the segment in its incarnation.
    pub ordinal: u64,
    /// Number of the segment's first record.
    pub first_seq: u64,
    /// SHA-256 of the origin.
    pub origin_digest: [u8; 32],
}

impl SegmentHeader {
    /// Encodes the header.
    #[must_use]
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_LEN] {
        let mut bytes = [0; SEGMENT_HEADER_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&u32::from(VERSION).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.incarnation.to_bytes());
        bytes[32..40].copy_from_slice(&self.ordinal.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.first_seq.to_le_bytes());
        bytes[48..80].copy_from_slice(&self.origin_digest);
        let crc = crc32c::crc32c(&bytes[..124]);
        bytes[124..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes a header from the first bytes of a segment.
    ///
    /// # Errors
    /// A description of the fault.
    pub fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        if bytes.len() < SEGMENT_HEADER_LEN {
            return Err("the file is shorter than a segment header");
        }
        if bytes[..8] != MAGIC {
            return Err("the segment header does not begin with the magic number");
        }
        if crc32c::crc32c(&bytes[..124]) != u32_at(bytes, 124) {
            return Err("the segment header's checksum does not match");
        }
        if u32_at(bytes, 8) != u32::from(VERSION) {
            return Err("the segment has an unknown format version");
        }
        let mut incarnation = [0; 16];
        incarnation.copy_from_slice(&bytes[16..32]);
        let mut origin = [0; 32];
        origin.copy_from_slice(&bytes[48..80]);
        Ok(Self {
            incarnation: Ulid::from_bytes(incarnation),
            ordinal: u64_at(bytes, 32),
            first_seq: u64_at(bytes, 40),
            origin_digest: origin,
        })
    }

    /// Returns the CRC to which record 0 chains.
    #[must_use]
    pub fn crc(&self) -> u32 {
        u32_at(&self.encode(), 124)
    }
}

/// Converts `batch[start..]`, which holds [`FRAME_HEADER_LEN`] reserved bytes and a payload, into a
/// frame, and returns the payload CRC. `tag` receives all bytes of the frame before the tag. If
/// `tag` returns `None`, truncates the batch to `start` and returns `None`. The payload must not
/// exceed the record limit.
pub fn seal_frame(
    batch: &mut Vec<u8>,
    start: usize,
    segment_crc: SegmentCrc,
    seq: u64,
    durable: u64,
    prev_crc: u32,
    tag: impl FnOnce(&[u8]) -> Option<FrameTag>,
) -> Option<u32> {
    let payload = batch.len() - start - FRAME_HEADER_LEN;
    let len = u32::try_from(payload).unwrap_or(u32::MAX).to_le_bytes();
    batch.resize(start + FRAME_HEADER_LEN + payload.next_multiple_of(8), 0);
    let header = &mut batch[start..start + FRAME_HEADER_LEN];
    header[..4].copy_from_slice(&len);
    header[4] = TYPE_RECORD;
    header[5] = 0;
    header[6..8].copy_from_slice(&VERSION.to_le_bytes());
    header[8..16].copy_from_slice(&seq.to_le_bytes());
    header[16..24].copy_from_slice(&durable.to_le_bytes());
    header[24..28].copy_from_slice(&prev_crc.to_le_bytes());
    let header_crc = segment_crc.crc(seq, &header[..28]);
    header[28..].copy_from_slice(&header_crc.to_le_bytes());
    let Some(tag) = tag(&batch[start..]) else {
        batch.truncate(start);
        return None;
    };
    batch.extend_from_slice(&tag);
    let payload_crc = segment_crc.crc(seq, &batch[start + FRAME_HEADER_LEN..]);
    batch.extend_from_slice(&payload_crc.to_le_bytes());
    batch.extend_from_slice(&len);
    Some(payload_crc)
}

/// Splits a whole frame into the bytes that its tag covers and the tag.
#[must_use]
pub fn split_tag(frame: &[u8]) -> (&[u8], &[u8]) {
    let (tagged, footer) = frame.split_at(frame.len().saturating_sub(FRAME_FOOTER_LEN));
    (tagged, &footer[..FRAME_TAG_LEN.min(footer.len())])
}

/// A frame's header that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of the payload.
    pub len: usize,
    /// Number of the record.
    pub seq: u64,
    /// Number of records known to be synced when this record was framed.
    pub durable: u64,
    /// Payload CRC of the previous record.
    pub prev_crc: u32,
}

impl FrameHeader {
    /// Decodes the header of a frame. `bytes` must hold [`FRAME_HEADER_LEN`] bytes.
    ///
    /// # Errors
    /// A description of the fault.
    pub fn decode(bytes: &[u8], key: SegmentCrc) -> Result<Self, &'static str> {
        let len = u32_at(bytes, 0) as usize;
        let seq = u64_at(bytes, 8);
        if len > proofgate_ledger::record::MAX_RECORD_BYTES
            || bytes[4] != TYPE_RECORD
            || bytes[5] != 0
            || bytes[6..8] != VERSION.to_le_bytes()
        {
            return Err("no frame header begins at this position");
        }
        if key.crc(seq, &bytes[..28]) != u32_at(bytes, 28) {
            return Err("the frame header's checksum does not match");
        }
        Ok(Self {
            len,
            seq,
            durable: u64_at(bytes, 16),
            prev_crc: u32_at(bytes, 24),
        })
    }

    /// Returns the number of bytes of the whole frame.
    #[must_use]
    pub fn frame_len(&self) -> usize {
        FRAME_HEADER_LEN + self.len.next_multiple_of(8) + FRAME_FOOTER_LEN
    }

    /// Checks payload, padding and footer of a whole frame, which must be [`Self::frame_len`] bytes
    /// long. Returns the payload CRC.
    ///
    /// # Errors
    /// A description of the fault.
    pub fn check(&self, frame: &[u8], key: SegmentCrc) -> Result<u32, &'static str> {
        let footer = frame.len() - 8;
        let crc = key.crc(self.seq, &frame[FRAME_HEADER_LEN..footer]);
        if crc != u32_at(frame, footer) {
            return Err("the record's checksum does not match");
        }
        if u32_at(frame, footer + 4) as usize != self.len {
            return Err("the record's lengths in its header and its footer differ");
        }
        Ok(crc)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4]
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u32::from(*byte))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8]
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

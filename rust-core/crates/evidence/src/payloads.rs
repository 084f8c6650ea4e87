//! Stored payloads: the bodies of exchanges beside their log, encrypted for the holder of the payload key. All numbers
//! are little-endian.
//!
//! ```text
//! payload-index   16 bytes for each record number, at 16 × seq:  request u64 | response u64
//!                 where the admission's frames begin, plus one; 0 when there is none
//! payloads        frames, in no order:  magic [8] | seq u64 | field u32 | bytes u32 | reserved u32 | crc u32 | sealed bytes
//! ```
//!
//! The CRC32C covers the 28 bytes before it. A header is followed by the ciphertext and tag of
//! AES-256-GCM (the `payloads` crate), opaque to a reader without the key. Bytes of `payloads` to
//! which no entry points are the rest of a frame that a crash interrupted.

use crate::{EvidenceError, ReadFile, ReadStorage, read_full};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the file with the frames.
pub const PAYLOADS_FILE: &str = "payloads";
/// Name of the file with the positions of the frames.
pub const PAYLOAD_INDEX_FILE: &str = "payload-index";
/// Bytes of an entry of the index.
pub const ENTRY_LEN: usize = 16;
/// Bytes of a frame before its sealed bytes.
pub const HEADER_LEN: usize = 32;
/// Bytes that sealing adds to a body.
pub const SEAL_OVERHEAD: usize = 16;
/// Largest stored body, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 64 << 20;

const MAGIC: [u8; 8] = *b"PGPAYLD\x01";

/// A body of an exchange: the request or the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PayloadField {
    /// The body that the client sent.
    Request,
    /// The body of the response.
    Response,
}

impl PayloadField {
    /// Both fields, in the order request, response.
    pub const ALL: [Self; 2] = [Self::Request, Self::Response];

    /// Returns the name of the field, which is also the name of the body's commitment.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
        }
    }

    /// Returns the number of the field in a frame.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::Request => 1,
            Self::Response => 2,
        }
    }

    /// Returns the offset of the field's index entry for the admission with this number; `None`
    /// beyond the largest file offset.
    #[must_use]
    pub fn entry_offset(self, seq: u64) -> Option<u64> {
        let entry = seq.checked_mul(ENTRY_LEN as u64)?;
        entry.checked_add(u64::from(self.number() - 1) * 8)
    }
}

/// The header before sealed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadHeader {
    /// Number of the admission.
    pub seq: u64,
    /// The body of the exchange that is sealed.
    pub field: PayloadField,
    /// Number of sealed bytes after the header.
    pub sealed_len: u32,
}

impl PayloadHeader {
    /// Encodes the header.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        out[..8].copy_from_slice(&MAGIC);
        out[8..16].copy_from_slice(&self.seq.to_le_bytes());
        out[16..20].copy_from_slice(&self.field.number().to_le_bytes());
        out[20..24].copy_from_slice(&self.sealed_len.to_le_bytes());
        let crc = crc32c::crc32c(&out[..28]);
        out[28..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Decodes a header.
    ///
    /// # Errors
    /// A description of the fault.
    pub fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Self, &'static str> {
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if bytes[..8] != MAGIC {
            return Err("no frame begins at this position");
        }
        if crc32c::crc32c(&bytes[..28]) != u32_at(28) {
            return Err("the checksum of a frame's header does not match");
        }
        let field = match u32_at(16) {
            1 => PayloadField::Request,
            2 => PayloadField::Response,
            _ => return Err("a frame contains an unknown kind of body"),
        };
        if u32_at(24) != 0 {
            return Err("a frame has a newer format than this version can read");
        }
        let sealed = u32_at(20);
        if !(SEAL_OVERHEAD..=MAX_PAYLOAD_BYTES + SEAL_OVERHEAD).contains(&(sealed as usize)) {
            return Err("a frame's length is out of range");
        }
        let mut seq = [0; 8];
        seq.copy_from_slice(&bytes[8..16]);
        Ok(Self {
            seq: u64::from_le_bytes(seq),
            field,
            sealed_len: sealed,
        })
    }
}

/// The position of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLocation {
    /// Offset of the frame's header.
    pub offset: u64,
    /// Number of sealed bytes after the header.
    pub sealed_len: u32,
}

/// A reader for the stored payloads of one log.
pub struct PayloadFiles {
    payloads: Arc<dyn ReadFile>,
    index: Arc<dyn ReadFile>,
    path: PathBuf,
    index_path: PathBuf,
}

impl PayloadFiles {
    /// Opens the files; `None` when nothing was stored.
    ///
    /// # Errors
    /// [`EvidenceError::Io`].
    pub fn open(storage: &dyn ReadStorage, incarnation_dir: &Path) -> Result<Option<Self>, EvidenceError> {
        let open = |name: &str| {
            let path = incarnation_dir.join(name);
            match storage.open(&path) {
                Ok(file) => Ok(Some((file, path))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(EvidenceError::io("open", &path)(error)),
            }
        };
        // A writer creates the payloads file before the index.
        let (Some((index, index_path)), Some((payloads, path))) =
            (open(PAYLOAD_INDEX_FILE)?, open(PAYLOADS_FILE)?)
        else {
            return Ok(None);
        };
        Ok(Some(Self {
            payloads,
            index,
            path,
            index_path,
        }))
    }

    /// Returns the position of a body of the admission with this number; `None` when it was not stored.
    ///
    /// # Errors
    /// [`EvidenceError::Corruption`] when the index points to anything except the body's frame;
    /// [`EvidenceError::Io`].
    pub fn locate(&self, seq: u64, field: PayloadField) -> Result<Option<FrameLocation>, EvidenceError> {
        let Some(at) = field.entry_offset(seq) else {
            return Ok(None);
        };
        let mut entry = [0; 8];
        let read =
            read_full(&*self.index, &mut entry, at).map_err(EvidenceError::io("read", &self.index_path))?;
        let Some(offset) = u64::from_le_bytes(entry).checked_sub(1) else {
            return Ok(None);
        };
        if read < entry.len() {
            return Ok(None);
        }
        let damaged = |reason: &str| EvidenceError::Corruption {
            path: self.path.clone(),
            offset,
            reason: format!("{} of record {seq}: {reason}", field.as_str()),
        };
        let io = || EvidenceError::io("read", &self.path);
        let mut header = [0; HEADER_LEN];
        if read_full(&*self.payloads, &mut header, offset).map_err(io())? < HEADER_LEN {
            return Err(damaged("the index points past the end of the file"));
        }
        let header = PayloadHeader::decode(&header).map_err(damaged)?;
        if (header.seq, header.field) != (seq, field) {
            return Err(damaged("the index points to the frame of another body"));
        }
        let end = offset
            .checked_add(HEADER_LEN as u64)
            .and_then(|begin| begin.checked_add(header.sealed_len.into()));
        let length = self.payloads.len().map_err(io())?;
        if end.is_none_or(|end| end > length) {
            return Err(damaged("its frame ends past the end of the file"));
        }
        Ok(Some(FrameLocation {
            offset,
            sealed_len: header.sealed_len,
        }))
    }

    /// Returns the sealed bytes of a frame.
    ///
    /// # Errors
    /// [`EvidenceError::Corruption`] when some of these bytes are missing; [`EvidenceError::Io`].
    pub fn read_sealed(&self, placed: FrameLocation) -> Result<Vec<u8>, EvidenceError> {
        let mut sealed = vec![0; placed.sealed_len as usize];
        let begin = placed.offset.saturating_add(HEADER_LEN as u64);
        let read =
            read_full(&*self.payloads, &mut sealed, begin).map_err(EvidenceError::io("read", &self.path))?;
        if read < sealed.len() {
            return Err(EvidenceError::Corruption {
                path: self.path.clone(),
                offset: placed.offset,
                reason: "a frame is truncated".to_owned(),
            });
        }
        Ok(sealed)
    }

    /// Returns the number of admissions for which the index has entries.
    ///
    /// # Errors
    /// [`EvidenceError::Io`].
    pub fn entry_count(&self) -> Result<u64, EvidenceError> {
        let bytes = self
            .index
            .len()
            .map_err(EvidenceError::io("stat", &self.index_path))?;
        Ok(bytes.div_ceil(ENTRY_LEN as u64))
    }
}

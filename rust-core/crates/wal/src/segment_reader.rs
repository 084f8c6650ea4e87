//! Reads the records of one segment, checksum by checksum. Everything that reads a log reads through it: the ledger
//! thread behind the writer, and [`LogReader`](crate::log_reader::LogReader) for recovery, `fsck` and proofs.

use crate::frame::{FRAME_HEADER, FrameHeader, SEGMENT_HEADER, SegmentKey};
use crate::storage::{StoredFile, read_full};
use std::io;
use std::sync::Arc;

/// Bytes read at once: little at first, as the ledger thread mostly finds a few new records.
const FIRST_READ: usize = 16 << 10;
const NEXT_READ: usize = 256 << 10;

/// What stands at a place in a segment.
pub(crate) enum Slot {
    /// A record whose checksums match.
    Record(Stored),
    /// Zeros, or the end of the file.
    Empty,
    /// Bytes that are no record.
    Bad(&'static str),
}

/// A record as it is stored; its payload is asked for while it is the last one read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub(crate) seq: u64,
    /// Number of records known to be synced when this one was framed.
    pub(crate) durable: u64,
    pub(crate) prev_crc: u32,
    pub(crate) crc: u32,
    /// Where its frame starts.
    pub(crate) offset: u64,
    /// Bytes of the payload.
    pub(crate) len: usize,
}

/// Reads the frames of one segment in order.
pub(crate) struct SegmentReader {
    file: Arc<dyn StoredFile>,
    key: SegmentKey,
    /// Where the next frame starts.
    pub(crate) offset: u64,
    len: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl SegmentReader {
    pub(crate) fn new(file: Arc<dyn StoredFile>, key: SegmentKey, len: u64) -> Self {
        Self {
            file,
            key,
            offset: SEGMENT_HEADER as u64,
            len,
            window: Vec::new(),
            window_at: 0,
        }
    }

    /// Forgets what was read: the writer may have written there since.
    pub(crate) fn refresh(&mut self) {
        self.window.clear();
    }

    /// The frame at `self.offset`; a record moves `self.offset` behind it.
    pub(crate) fn next(&mut self) -> io::Result<Slot> {
        let (offset, key) = (self.offset, self.key);
        let Some(bytes) = self.bytes(offset, FRAME_HEADER)? else {
            return Ok(Slot::Empty);
        };
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(Slot::Empty);
        }
        let header = match FrameHeader::decode(bytes, key) {
            Ok(header) => header,
            Err(reason) => return Ok(Slot::Bad(reason)),
        };
        let Some(frame) = self.bytes(offset, header.frame_bytes())? else {
            return Ok(Slot::Bad("the record reaches beyond the end of its segment"));
        };
        let crc = match header.check(frame, key) {
            Ok(crc) => crc,
            Err(reason) => return Ok(Slot::Bad(reason)),
        };
        self.offset += header.frame_bytes() as u64;
        let FrameHeader {
            len,
            seq,
            durable,
            prev_crc,
        } = header;
        Ok(Slot::Record(Stored {
            seq,
            durable,
            prev_crc,
            crc,
            offset,
            len,
        }))
    }

    /// The payload of the record that `next` has just returned.
    pub(crate) fn payload(&self, stored: &Stored) -> &[u8] {
        let start = (stored.offset - self.window_at) as usize + FRAME_HEADER;
        &self.window[start..start + stored.len]
    }

    /// `len` bytes at `at`, or `None` when the file ends before.
    fn bytes(&mut self, at: u64, len: usize) -> io::Result<Option<&[u8]>> {
        let end = at.saturating_add(len as u64);
        if end > self.len {
            return Ok(None);
        }
        let held = self.window_at..self.window_at + self.window.len() as u64;
        if at < held.start || end > held.end {
            let follows = !held.is_empty() && at >= held.start && at <= held.end;
            let wish = if follows { NEXT_READ } else { FIRST_READ }.max(len);
            let wish = usize::try_from(self.len - at).unwrap_or(wish).min(wish);
            self.window.resize(wish, 0);
            self.window_at = at;
            let read = read_full(&*self.file, &mut self.window, at)?;
            self.window.truncate(read);
            if read < len {
                return Ok(None);
            }
        }
        let start = (at - self.window_at) as usize;
        Ok(Some(&self.window[start..start + len]))
    }

    /// The first byte from `from` on that is not zero.
    pub(crate) fn first_nonzero(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut at = from;
        while at < self.len {
            let len = usize::try_from(self.len - at).unwrap_or(NEXT_READ).min(NEXT_READ);
            let Some(bytes) = self.bytes(at, len)? else { break };
            if let Some(found) = bytes.iter().position(|byte| *byte != 0) {
                return Ok(Some(at + found as u64));
            }
            at += len as u64;
        }
        Ok(None)
    }

    /// The first whole record from `from` on, in steps of 8 bytes, whose number is at least `seq`.
    pub(crate) fn resync(&mut self, from: u64, seq: u64) -> io::Result<Option<(u64, u64)>> {
        let key = self.key;
        let mut at = from.next_multiple_of(8);
        while let Some(bytes) = self.bytes(at, FRAME_HEADER)? {
            if let Ok(header) = FrameHeader::decode(bytes, key) {
                let whole = self.bytes(at, header.frame_bytes())?;
                if header.seq >= seq && whole.is_some_and(|frame| header.check(frame, key).is_ok()) {
                    return Ok(Some((at, header.seq)));
                }
            }
            at += 8;
        }
        Ok(None)
    }
}

//! Reads the records of one segment and verifies their checksums. All readers of a log use it: the ledger thread that
//! follows the writer, and [`LogReader`](crate::log_reader::LogReader) for recovery, `fsck` and proofs.

use crate::frame::{FRAME_HEADER_LEN, FrameHeader, SEGMENT_HEADER_LEN, SegmentCrc, frame_len, split_tag};
use crate::{ReadFile, read_full};
use std::io;
use std::sync::Arc;

/// Smallest number of bytes per read. Reads start small, because the ledger thread usually finds
/// only a few new records.
const MIN_READ: usize = 16 << 10;
const MAX_READ: usize = 256 << 10;

/// The contents of a segment at an offset.
pub enum Slot {
    /// A record whose checksums match.
    Record(StoredRecord),
    /// Zeros, or the end of the file.
    Empty,
    /// Bytes that are not a record.
    Invalid(&'static str),
}

/// A stored record. Its payload is available until the next record is read.
#[derive(Clone, Copy, Debug)]
pub struct StoredRecord {
    /// Number of the record.
    pub seq: u64,
    /// Number of records known to be synced when this record was framed.
    pub durable: u64,
    /// The payload CRC of the previous record, as this record states it.
    pub prev_crc: u32,
    /// Payload CRC of the record.
    pub crc: u32,
    /// Offset of the record's frame.
    pub offset: u64,
    /// Bytes of the payload.
    pub len: usize,
}

/// A reader of the frames of one segment, in order.
pub struct SegmentReader {
    file: Arc<dyn ReadFile>,
    segment_crc: SegmentCrc,
    /// Offset of the next frame.
    pub offset: u64,
    len: u64,
    window: Vec<u8>,
    window_at: u64,
    /// Number of bytes that may still be searched for the continuation of the log. Data beyond it
    /// is treated as absent.
    pub(crate) search_budget: u64,
}

impl SegmentReader {
    /// Creates a reader for `file`, of `len` bytes, that starts after the segment header.
    #[must_use]
    pub fn new(file: Arc<dyn ReadFile>, key: SegmentCrc, len: u64) -> Self {
        Self {
            file,
            segment_crc: key,
            offset: SEGMENT_HEADER_LEN as u64,
            len,
            window: Vec::new(),
            window_at: 0,
            search_budget: u64::MAX,
        }
    }

    /// Returns the number of bytes of the segment.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Discards buffered bytes, because the writer may have changed them since they were read.
    pub fn refresh(&mut self) {
        self.window.clear();
    }

    /// Reads the frame at `self.offset`; a record moves `self.offset` past it.
    ///
    /// # Errors
    /// The errors of the file system.
    #[expect(
        clippy::should_implement_trait,
        reason = "not an Iterator: a step can fail, and the payload is borrowed"
    )]
    pub fn next(&mut self) -> io::Result<Slot> {
        let (offset, key) = (self.offset, self.segment_crc);
        let Some(bytes) = self.read_bytes(offset, FRAME_HEADER_LEN)? else {
            return Ok(Slot::Empty);
        };
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(Slot::Empty);
        }
        let header = match FrameHeader::decode(bytes, key) {
            Ok(header) => header,
            Err(reason) => return Ok(Slot::Invalid(reason)),
        };
        let Some(frame) = self.read_bytes(offset, header.frame_len())? else {
            return Ok(Slot::Invalid("the record extends past the end of its segment"));
        };
        let crc = match header.check(frame, key) {
            Ok(crc) => crc,
            Err(reason) => return Ok(Slot::Invalid(reason)),
        };
        self.offset += header.frame_len() as u64;
        let FrameHeader {
            len,
            seq,
            durable,
            prev_crc,
        } = header;
        Ok(Slot::Record(StoredRecord {
            seq,
            durable,
            prev_crc,
            crc,
            offset,
            len,
        }))
    }

    /// Returns the payload of the record that `next` has just returned.
    #[must_use]
    pub fn payload(&self, stored: &StoredRecord) -> &[u8] {
        let start = (stored.offset - self.window_at) as usize + FRAME_HEADER_LEN;
        &self.window[start..start + stored.len]
    }

    /// Returns, for the record that `next` has just returned, the bytes that its tag covers, and
    /// the tag.
    #[must_use]
    pub fn tagged_bytes(&self, stored: &StoredRecord) -> (&[u8], &[u8]) {
        let start = (stored.offset - self.window_at) as usize;
        let len = usize::try_from(frame_len(stored.len)).unwrap_or(usize::MAX);
        split_tag(&self.window[start..start.saturating_add(len)])
    }

    /// Returns `len` bytes at `at`; `None` when the file ends earlier.
    fn read_bytes(&mut self, at: u64, len: usize) -> io::Result<Option<&[u8]>> {
        let end = at.saturating_add(len as u64);
        if end > self.len {
            return Ok(None);
        }
        let held = self.window_at..self.window_at + self.window.len() as u64;
        if at < held.start || end > held.end {
            let follows = !held.is_empty() && at >= held.start && at <= held.end;
            let wish = if follows { 2 * self.window.len() } else { MIN_READ };
            let wish = wish.min(MAX_READ).max(len);
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

    /// Returns the offset at which a search that reached `at` continues. The search skips a hole,
    /// which does not count against the budget. `None` when there is no more data, or the search
    /// budget is used up.
    fn next_search_offset(&mut self, at: u64) -> io::Result<Option<u64>> {
        if self.search_budget == 0 || at >= self.len {
            return Ok(None);
        }
        let next = self.file.next_data(at)?.filter(|next| *next < self.len);
        if next.is_some() {
            self.search_budget = self.search_budget.saturating_sub(MAX_READ as u64);
        }
        Ok(next.map(|next| next.max(at)))
    }

    /// Returns the offset of the first nonzero byte at or after `from`.
    ///
    /// # Errors
    /// The errors of the file system.
    pub fn first_nonzero(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut at = from;
        while let Some(next) = self.next_search_offset(at)? {
            at = next;
            let len = usize::try_from(self.len - at).unwrap_or(MAX_READ).min(MAX_READ);
            let Some(bytes) = self.read_bytes(at, len)? else {
                break;
            };
            if let Some(found) = bytes.iter().position(|byte| *byte != 0) {
                return Ok(Some(at + found as u64));
            }
            at += len as u64;
        }
        Ok(None)
    }

    /// Finds the first whole record at or after `from` whose number is at least `seq`, in steps of
    /// 8 bytes.
    ///
    /// # Errors
    /// The errors of the file system.
    pub fn resync(&mut self, from: u64, seq: u64) -> io::Result<Option<(u64, u64)>> {
        self.resync_within(from, seq, u64::MAX)
    }

    /// Same as [`Self::resync`], but gives up when no record starts in the first `bytes` bytes.
    pub(crate) fn resync_within(
        &mut self,
        from: u64,
        seq: u64,
        bytes: u64,
    ) -> io::Result<Option<(u64, u64)>> {
        let key = self.segment_crc;
        let mut at = from.next_multiple_of(8);
        let end = at.saturating_add(bytes);
        let mut piece_end = at;
        while at < end {
            if at >= piece_end {
                let Some(next) = self.next_search_offset(at)? else {
                    break;
                };
                // No frame starts with eight zeros.
                at = at.max(next & !7);
                piece_end = at.saturating_add(MAX_READ as u64);
                continue;
            }
            let Some(bytes) = self.read_bytes(at, FRAME_HEADER_LEN)? else {
                break;
            };
            if let Ok(header) = FrameHeader::decode(bytes, key) {
                let whole = self.read_bytes(at, header.frame_len())?;
                if header.seq >= seq && whole.is_some_and(|frame| header.check(frame, key).is_ok()) {
                    return Ok(Some((at, header.seq)));
                }
            }
            at += 8;
        }
        Ok(None)
    }
}

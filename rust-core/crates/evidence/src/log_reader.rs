//! Reads an incarnation's log: follows the segments of its directory in order, reports their flaws,
//! and continues after damage. Recovery, `fsck`, proofs and exports use this reader.
//!
//! One segment is open at a time, and briefly also the next segment. The log may be written
//! concurrently. The writer fills a segment before it starts the next segment, and data that was
//! synced before a record was framed was written before that record. If later data makes a position
//! look wrong, the reader therefore reads the position again after this data, and reports it only
//! if it is still wrong.

use crate::segment::{MAX_SEGMENT_BYTES, SegmentName};
use crate::segment_reader::{SegmentReader, Slot, StoredRecord};
use crate::segments::{self, MAX_LISTINGS, MAX_PREPARED, OpenSegment};
use crate::time_search::StartPosition;
use crate::{EvidenceError, ReadStorage};
use std::cmp::Ordering;
use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use ulid::Ulid;

/// Default limit of the search for the position where a log continues, in bytes: the rest of a
/// segment and a few prepared segments.
const SEARCH_LIMIT: u64 = 4 * MAX_SEGMENT_BYTES;

/// A damaged part of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Path of the segment.
    pub path: PathBuf,
    /// Offset of the first affected byte.
    pub offset: u64,
    /// Number of the record that was expected at this offset.
    pub seq: u64,
    /// A description of the flaw.
    pub reason: String,
    /// Whether the flaw is data after the last record of a segment. If so, no record is missing if
    /// the log continues with `seq`.
    pub is_trailing_data: bool,
}

/// An item that a [`LogReader`] returns.
pub enum LogItem {
    /// A record. It has the expected number, or follows a [`LogItem::Flaw`].
    Record(StoredRecord),
    /// A damaged part of the log. Reading continues after it.
    Flaw(Flaw),
    /// The end of the log.
    End,
}

/// A position between two records of a log, with the state that follows from the records before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumePosition {
    /// Number of the first record in the segment that contains the position. The segment is named
    /// after this number.
    pub segment: u64,
    /// Offset of the next frame in this segment.
    pub offset: u64,
    /// Number of the next record.
    pub seq: u64,
    /// Payload CRC of the previous record.
    pub prev_crc: u32,
}

/// A reader of all records of an incarnation's directory, in order.
pub struct LogReader<'s> {
    storage: &'s dyn ReadStorage,
    dir: PathBuf,
    incarnation: Ulid,
    /// Segments not yet entered, in order.
    pending: VecDeque<SegmentName>,
    /// The first pending segment, if it is already open.
    next_segment: Option<OpenSegment>,
    /// Current and former names of the segments that were entered.
    entered: BTreeSet<SegmentName>,
    /// Position of the next segment.
    position: u64,
    reader: Option<SegmentReader>,
    /// Number of the first record of the segment that `reader` reads, according to the segment's
    /// header or name.
    first_seq: Option<u64>,
    path: PathBuf,
    origin: Option<[u8; 32]>,
    expected: u64,
    /// Number of records that are known to exist.
    min_records: u64,
    /// The CRC to which the next record must chain; `None` after a flaw.
    prev_crc: Option<u32>,
    /// Number of directory listings since the last segment was entered.
    listing_count: u32,
    /// Number of bytes that may still be searched for the next record, and the budget to which it
    /// is reset after each record.
    search_budget: (u64, u64),
    /// Number of bytes that were searched.
    bytes_searched: u64,
    /// Number of empty segments skipped since the last record.
    blank_segments: usize,
    ended: bool,
}

impl<'s> LogReader<'s> {
    /// Opens the log in an incarnation's directory, whose name must be its ULID.
    ///
    /// # Errors
    /// [`EvidenceError::Io`].
    pub fn open(storage: &'s dyn ReadStorage, dir: &Path, incarnation: Ulid) -> Result<Self, EvidenceError> {
        Ok(Self {
            storage,
            dir: dir.to_owned(),
            incarnation,
            pending: segments::list(storage, dir)?,
            next_segment: None,
            entered: BTreeSet::new(),
            position: 0,
            reader: None,
            first_seq: None,
            path: PathBuf::new(),
            origin: None,
            expected: 0,
            min_records: 0,
            prev_crc: None,
            listing_count: 0,
            search_budget: (SEARCH_LIMIT, SEARCH_LIMIT),
            bytes_searched: 0,
            blank_segments: 0,
            ended: false,
        })
    }

    /// Limits the search for the continuation of the log to `bytes` bytes of zeros or invalid data
    /// after a record, or before the first record. Data beyond this limit is treated as absent.
    pub fn limit_search(&mut self, bytes: u64) {
        self.search_budget = (bytes, bytes);
    }

    /// Returns the number of bytes that were searched for the continuation of the log since the
    /// last call.
    pub fn take_bytes_searched(&mut self) -> u64 {
        std::mem::take(&mut self.bytes_searched)
    }

    /// Sets the number of records that are known to exist, from a checkpoint read **before** the
    /// log was opened. A directory listing during the renaming of a segment may miss the segment,
    /// and is then repeated.
    pub fn expect_records(&mut self, records: u64) {
        self.min_records = records;
    }

    /// Returns the origin digest of the first segment whose header could be read so far.
    #[must_use]
    pub fn origin_digest(&self) -> Option<[u8; 32]> {
        self.origin
    }

    /// Returns the number of segments entered.
    #[must_use]
    pub fn segment_count(&self) -> u64 {
        self.position
    }

    /// Starts with the segment that holds record `seq` according to the file names. Must be called
    /// before `next`.
    pub fn seek(&mut self, seq: u64) {
        let holds = |name: &SegmentName| matches!(name, SegmentName::FirstSeq(first) if *first <= seq);
        let Some(at) = self.pending.iter().rposition(holds).filter(|at| *at > 0) else {
            return;
        };
        self.next_segment = None;
        self.entered.extend(self.pending.drain(..at));
        self.position = at as u64;
        if let Some(SegmentName::FirstSeq(first)) = self.pending.front() {
            self.expected = *first;
        }
    }

    /// Starts at a position known from an earlier read. Returns a flaw in the header of the
    /// position's segment, if any. Must be called before `next`.
    ///
    /// # Errors
    /// [`EvidenceError::Io`].
    pub fn resume_at(&mut self, place: &ResumePosition) -> Result<Option<Flaw>, EvidenceError> {
        self.seek(place.segment);
        let found = self.pending.front() == Some(&SegmentName::FirstSeq(place.segment));
        let mut flaw = self.enter_segment()?;
        self.expected = place.seq;
        self.prev_crc = Some(place.prev_crc);
        if !found {
            flaw = Some(self.flaw(0, format!("the segment of record {} is missing", place.seq)));
        }
        if let Some(reader) = &mut self.reader {
            reader.offset = place.offset;
        }
        Ok(flaw)
    }

    /// Returns the position after the record that `next` has just returned; `None` before the first record and after a
    /// flaw.
    #[must_use]
    pub fn resume_position(&self) -> Option<ResumePosition> {
        Some(ResumePosition {
            segment: self.first_seq?,
            offset: self.reader.as_ref()?.offset,
            seq: self.expected,
            prev_crc: self.prev_crc?,
        })
    }

    /// Returns, for the record that `next` has just returned, the bytes that its tag covers, and
    /// the tag.
    #[must_use]
    pub fn tagged_bytes(&self, stored: &StoredRecord) -> (&[u8], &[u8]) {
        self.reader
            .as_ref()
            .map_or((&[], &[]), |reader| reader.tagged_bytes(stored))
    }

    /// Starts at a position in one of the log's segments. Must be called before `next`.
    pub(crate) fn seek_to(&mut self, place: StartPosition) -> Result<(), EvidenceError> {
        let Some(at) = self.pending.iter().position(|name| *name == place.segment) else {
            // The segment was renamed in the meantime. A start at the beginning is also correct,
            // but slower.
            return Ok(());
        };
        if at > 0 {
            self.next_segment = None;
        }
        self.entered.extend(self.pending.drain(..at));
        self.position = at as u64;
        if !self.open_next_segment()? {
            return Ok(());
        }
        if let Some(Ok(header)) = self.next_segment.as_ref().map(|segment| &segment.header) {
            self.expected = header.first_seq;
        }
        self.enter_segment()?;
        if let Some(reader) = &mut self.reader {
            reader.offset = place.offset;
            self.expected = place.seq;
            self.prev_crc = None;
        }
        Ok(())
    }

    /// Returns the path of the segment that contains the last record.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the payload of the record that `next` has just returned.
    #[must_use]
    pub fn payload(&self, stored: &StoredRecord) -> &[u8] {
        self.reader.as_ref().map_or(&[], |reader| reader.payload(stored))
    }

    /// Returns the next record or flaw.
    ///
    /// # Errors
    /// [`EvidenceError::Io`].
    #[expect(
        clippy::should_implement_trait,
        reason = "not an Iterator: a step can fail, and the payload is borrowed"
    )]
    pub fn next(&mut self) -> Result<LogItem, EvidenceError> {
        loop {
            if self.ended {
                return Ok(LogItem::End);
            }
            let Some(reader) = &mut self.reader else {
                match self.enter_segment()? {
                    Some(flaw) => return Ok(LogItem::Flaw(flaw)),
                    None => continue,
                }
            };
            let from = reader.offset;
            let found = match reader.next().map_err(EvidenceError::io("read", &self.path))? {
                Slot::Record(stored) => return Ok(self.accept_record(stored)),
                Slot::Empty => self.handle_missing_record(from, None)?,
                Slot::Invalid(reason) => self.handle_missing_record(from, Some(reason))?,
            };
            if let Some(flaw) = found {
                return Ok(LogItem::Flaw(flaw));
            }
        }
    }

    /// Checks that a record is the next record of the log.
    fn accept_record(&mut self, stored: StoredRecord) -> LogItem {
        let seq = stored.seq;
        let misplaced = match seq.cmp(&self.expected) {
            Ordering::Less => Some("a record is repeated"),
            Ordering::Greater => Some("records are missing before this one"),
            Ordering::Equal if self.prev_crc.is_some_and(|chain| chain != stored.prev_crc) => {
                Some("the record does not chain to the previous record")
            }
            Ordering::Equal => None,
        };
        let Some(reason) = misplaced else {
            self.expected = seq.saturating_add(1);
            self.prev_crc = Some(stored.crc);
            (self.search_budget.0, self.blank_segments) = (self.search_budget.1, 0);
            return LogItem::Record(stored);
        };
        let reason = format!("{reason}: found record {seq}, expected {}", self.expected);
        let flaw = self.flaw(stored.offset, reason);
        if let Some(reader) = self.reader.as_mut().filter(|_| seq >= self.expected) {
            reader.offset = stored.offset;
            self.expected = seq;
            self.prev_crc = None;
        }
        LogItem::Flaw(flaw)
    }

    fn flaw(&self, offset: u64, reason: String) -> Flaw {
        Flaw {
            path: self.path.clone(),
            offset,
            seq: self.expected,
            reason,
            is_trailing_data: false,
        }
    }

    /// Handles the absence of the next record at `from`. The absence is a flaw, unless the record
    /// has been written in the meantime, or the segment or the log ends at `from`. `reason`
    /// describes bytes that are not a record; it is `None` if there are zeros or the file ends.
    fn handle_missing_record(
        &mut self,
        from: u64,
        reason: Option<&'static str>,
    ) -> Result<Option<Flaw>, EvidenceError> {
        let Some(reader) = &mut self.reader else {
            return Ok(None);
        };
        let (expected, search) = (self.expected, self.search_budget.0);
        reader.search_budget = search;
        let behind = (|| {
            let nonzero = match reason {
                Some(_) => Some(from),
                None => reader.first_nonzero(from)?,
            };
            let found = match nonzero {
                Some(_) => reader.resync(from + u64::from(reason.is_some()) * 8, expected)?,
                None => None,
            };
            Ok((nonzero, found))
        })();
        self.search_budget.0 = reader.search_budget;
        self.bytes_searched = self.bytes_searched.saturating_add(search - reader.search_budget);
        let (nonzero, found) = behind.map_err(EvidenceError::io("read", &self.path))?;
        let goes_on = match found {
            Some(_) => true,
            None => self.open_next_segment()?,
        };
        // The data that makes the position look wrong was read. Read the position again, because it
        // may have been written before this data.
        let Some(reader) = &mut self.reader else {
            return Ok(None);
        };
        reader.offset = from;
        reader.refresh();
        let again = reader.next().map_err(EvidenceError::io("read", &self.path))?;
        reader.offset = from;
        let reason = match again {
            Slot::Record(_) => return Ok(None),
            Slot::Invalid(reason) => Some(reason),
            Slot::Empty => None,
        };
        let Some(nonzero) = nonzero else {
            if goes_on {
                self.reader = None;
            } else {
                self.ended = !self.relist(self.expected < self.min_records)?;
            }
            return Ok(None);
        };
        let flaw = match (found, reason) {
            (Some((at, seq)), reason) => {
                let reason = reason.unwrap_or("there are zeros where records are expected");
                let lost = match seq.checked_sub(1).filter(|_| seq > expected) {
                    Some(last) => {
                        format!("; records {expected} to {last} are lost, and the log continues at byte {at}")
                    }
                    None => format!("; the log continues at byte {at}"),
                };
                let flaw = self.flaw(from, format!("{reason}{lost}"));
                if let Some(reader) = &mut self.reader {
                    reader.offset = at;
                }
                self.expected = seq;
                self.prev_crc = None;
                return Ok(Some(flaw));
            }
            (None, Some(reason)) => {
                self.prev_crc = None;
                self.flaw(from, reason.to_owned())
            }
            (None, None) => Flaw {
                is_trailing_data: true,
                ..self.flaw(nonzero, "bytes after the last record are not zero".to_owned())
            },
        };
        self.reader = None;
        self.ended = !goes_on && !self.relist(self.expected < self.min_records)?;
        Ok(Some(flaw))
    }

    /// Opens the next segment that is in use. Returns whether there is such a segment.
    fn open_next_segment(&mut self) -> Result<bool, EvidenceError> {
        while self.next_segment.is_none() {
            let Some(name) = self.pending.front().copied() else {
                return Ok(false);
            };
            match OpenSegment::open(self.storage, &self.dir, name) {
                Ok(mut segment) => {
                    let search = self.search_budget.0;
                    let in_use = segment.is_in_use(&mut self.search_budget.0)?;
                    self.bytes_searched = self.bytes_searched.saturating_add(search - self.search_budget.0);
                    if in_use {
                        if let Ok(header) = &segment.header {
                            self.origin.get_or_insert(header.origin_digest);
                        }
                        self.next_segment = Some(segment);
                    } else if self.blank_segments < MAX_PREPARED {
                        self.blank_segments += 1;
                        self.pending.pop_front();
                    } else {
                        self.pending.clear();
                    }
                }
                Err(error) if segments::is_not_found(&error) => {
                    if !self.relist(true)? {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Lists the directory again if `wanted` is true and the limit is not reached. Returns whether
    /// it was listed.
    fn relist(&mut self, wanted: bool) -> Result<bool, EvidenceError> {
        if !wanted || self.listing_count == MAX_LISTINGS {
            return Ok(false);
        }
        self.listing_count += 1;
        self.next_segment = None;
        self.pending = segments::list(self.storage, &self.dir)?;
        self.pending.retain(|name| !self.entered.contains(name));
        Ok(true)
    }

    /// Enters the next segment. A flaw in its header is returned once, and its frames are still
    /// read.
    fn enter_segment(&mut self) -> Result<Option<Flaw>, EvidenceError> {
        if !self.open_next_segment()? {
            self.ended = !self.relist(self.expected < self.min_records)?;
            return Ok(None);
        }
        // Both are `Some` after `open_next_segment`.
        let (Some(segment), Some(name)) = (self.next_segment.take(), self.pending.front().copied()) else {
            self.ended = true;
            return Ok(None);
        };
        let first_seq = segment.header.as_ref().map(|header| header.first_seq);
        if first_seq.is_ok_and(|first| first > self.expected) && self.relist(self.listing_count == 0)? {
            return Ok(None);
        }
        self.pending.pop_front();
        self.listing_count = 0;
        self.entered.insert(name);
        if let Ok(header) = &segment.header {
            self.entered.insert(SegmentName::FirstSeq(header.first_seq));
            self.entered.insert(SegmentName::Prepared(header.ordinal));
        }
        // Names sort by number, so the position of a segment without a readable header is still
        // known.
        let ordinal = match (&segment.header, name) {
            (Ok(header), _) => header.ordinal,
            (Err(_), SegmentName::Prepared(ordinal)) => ordinal,
            (Err(_), SegmentName::FirstSeq(_)) => self.position,
        };
        self.reader = Some(segment.reader(self.incarnation, ordinal));
        self.first_seq = match (&segment.header, name) {
            (Ok(header), _) => Some(header.first_seq),
            (Err(_), SegmentName::FirstSeq(first)) => Some(first),
            (Err(_), SegmentName::Prepared(_)) => None,
        };
        let reason = self.header_mismatch(&segment);
        self.position += 1;
        self.path = segment.path;
        match reason {
            Some(reason) => {
                self.prev_crc = None;
                Ok(Some(self.flaw(0, reason)))
            }
            None => {
                if let Ok(header) = segment.header
                    && header.first_seq == 0
                {
                    self.prev_crc = Some(header.crc());
                }
                Ok(None)
            }
        }
    }

    /// Returns the reason why a segment's header is not valid for the next segment of this log;
    /// `None` if it is valid.
    fn header_mismatch(&self, segment: &OpenSegment) -> Option<String> {
        let header = match &segment.header {
            Ok(header) => header,
            Err(reason) => return Some((*reason).to_owned()),
        };
        let (first, ordinal, position) = (header.first_seq, header.ordinal, self.position);
        if header.incarnation != self.incarnation {
            Some(format!(
                "the segment belongs to incarnation {}",
                header.incarnation
            ))
        } else if ordinal != position {
            Some(format!("expected segment {position}, found segment {ordinal}"))
        } else if segment.name != SegmentName::Prepared(ordinal)
            && segment.name != SegmentName::FirstSeq(first)
        {
            Some("the segment has the name of another segment".to_owned())
        } else if self.origin.is_some_and(|origin| origin != header.origin_digest) {
            Some("the segment belongs to another origin".to_owned())
        } else if first != self.expected {
            Some(format!(
                "the segment starts with record {first}, expected {}",
                self.expected
            ))
        } else {
            None
        }
    }
}

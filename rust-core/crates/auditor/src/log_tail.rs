//! Reads a log from the position at which the last read stopped, up to a signed size. It never
//! reads further, because unsigned records may still be torn or in flight.

use crate::log_facts::LogFacts;
use proofgate_evidence::frame::frame_len;
use proofgate_evidence::log_reader::{Flaw, LogItem, LogReader, ResumePosition};
use proofgate_evidence::segment::{SegmentName, prepared_name, segment_name};
use proofgate_evidence::{EvidenceError, ReadStorage, Ulid, read_full};
use proofgate_ledger::{Hash, LedgerError, Mmr, leaf_hash};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A position in a log, with the state of the records before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogPosition {
    /// Number of records before the position.
    pub(crate) size: u64,
    /// Peaks of the tree over these records, oldest first.
    #[serde(with = "crate::hash_encoding::hashes")]
    pub(crate) peaks: Vec<Hash>,
    /// Number of the first record in the segment that contains the position.
    pub(crate) segment: u64,
    /// Offset of the next frame in that segment.
    pub(crate) offset: u64,
    /// Payload CRC of the previous record.
    pub(crate) chain: u32,
    /// Number of segments up to the position.
    pub(crate) segments: u64,
}

/// A reader of a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogTail {
    mmr: Mmr,
    position: Option<ResumePosition>,
    segments: u64,
    pub(crate) facts: LogFacts,
}

/// The result of a read.
pub(crate) enum ReadProgress {
    /// The size was reached.
    SizeReached,
    /// The budget is used up.
    Paused,
    /// The log ends before the size.
    EndedEarly,
    /// The bytes at this position are not a record of this log.
    Damaged(Flaw),
    /// A record is not allowed at this position.
    Refused(String),
}

impl LogTail {
    /// Resumes from a position.
    pub(crate) fn resume_from(point: &LogPosition, facts: LogFacts) -> Result<Self, LedgerError> {
        if point.size == 0 {
            return Ok(Self::default());
        }
        Ok(Self {
            mmr: Mmr::from_peaks(point.size, point.peaks.clone())?,
            position: Some(ResumePosition {
                segment: point.segment,
                offset: point.offset,
                seq: point.size,
                prev_crc: point.chain,
            }),
            segments: point.segments,
            facts,
        })
    }

    /// Returns the current position; `None` before the first record.
    pub(crate) fn position(&self) -> Option<LogPosition> {
        let place = self.position?;
        Some(LogPosition {
            size: self.mmr.size(),
            peaks: self.mmr.peaks().to_vec(),
            segment: place.segment,
            offset: place.offset,
            chain: place.prev_crc,
            segments: self.segments,
        })
    }

    pub(crate) fn size(&self) -> u64 {
        self.mmr.size()
    }

    pub(crate) fn root(&self) -> Hash {
        self.mmr.root()
    }

    /// Reads up to `size` records in total, or until `budget` is used up. Records before a flaw
    /// count as read, so that a second check starts at the flaw.
    pub(crate) fn advance(
        &mut self,
        storage: &dyn ReadStorage,
        dir: &Path,
        incarnation: Ulid,
        size: u64,
        budget: &mut ReadBudget,
    ) -> Result<ReadProgress, EvidenceError> {
        if self.mmr.size() >= size {
            return Ok(ReadProgress::SizeReached);
        }
        let mut log = LogReader::open(storage, dir, incarnation)?;
        log.limit_search(MAX_UNSIGNED_BYTES);
        if budget.signed {
            log.expect_records(size);
            log.limit_search(SEARCH_LIMIT);
        }
        if let Some(place) = &self.position
            && let Some(flaw) = log.resume_at(place)?
        {
            return Ok(ReadProgress::Damaged(flaw));
        }
        let (mut step, mut place, mut residue) = (ReadProgress::SizeReached, self.position, false);
        while self.mmr.size() < size {
            // Stop only at a record, from which the next read can resume.
            if budget.is_exhausted() && !residue {
                step = ReadProgress::Paused;
                break;
            }
            let found = log.next()?;
            budget.remaining = budget.remaining.saturating_sub(log.take_bytes_searched());
            residue = matches!(&found, LogItem::Flaw(flaw) if flaw.is_trailing_data);
            step = match found {
                LogItem::Record(stored) => {
                    let payload = log.payload(&stored);
                    match self.facts.process(stored.seq, payload) {
                        Ok(()) => {
                            self.mmr.push(leaf_hash(payload), &mut |_| {});
                            budget.spend(frame_len(stored.len));
                            place = log.resume_position();
                            continue;
                        }
                        Err(message) => ReadProgress::Refused(message),
                    }
                }
                LogItem::Flaw(_) if residue => continue,
                LogItem::Flaw(flaw) => ReadProgress::Damaged(flaw),
                LogItem::End => ReadProgress::EndedEarly,
            };
            break;
        }
        if self.mmr.size() == size {
            step = ReadProgress::SizeReached;
        }
        self.position = place;
        self.segments = log.segment_count().max(self.segments);
        Ok(step)
    }
}

/// Number of bytes of a signed log that are searched for the next record: two segments of the usual
/// size.
const SEARCH_LIMIT: u64 = 64 << 20;
/// Number of bytes that are read from an unsigned log.
const MAX_UNSIGNED_BYTES: u64 = 1 << 20;
/// Additional cost of checking an unsigned log, in bytes: its checkpoint, some files and a listing.
const UNSIGNED_CHECK_COST: u64 = 64 << 10;

/// The number of bytes that may still be read, and the number of bytes that were read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadBudget {
    /// Remaining bytes of records, and of data that is searched for records.
    remaining: u64,
    /// Whether the log is signed.
    signed: bool,
    pub(crate) bytes_read: u64,
    pub(crate) records_read: u64,
}

impl ReadBudget {
    pub(crate) fn with_bytes(bytes: u64) -> Self {
        Self {
            remaining: bytes,
            signed: true,
            ..Self::default()
        }
    }

    /// Returns the budget for an unsigned log.
    pub(crate) fn for_unsigned() -> Self {
        Self {
            signed: false,
            ..Self::with_bytes(MAX_UNSIGNED_BYTES)
        }
    }

    /// Charges the cost of a check that had its own budget.
    pub(crate) fn charge(&mut self, unsigned: &Self) {
        let read = MAX_UNSIGNED_BYTES.saturating_sub(unsigned.remaining);
        self.remaining = self.remaining.saturating_sub(UNSIGNED_CHECK_COST + read);
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.remaining == 0
    }

    fn spend(&mut self, bytes: u64) {
        self.remaining = self.remaining.saturating_sub(bytes);
        self.bytes_read += bytes;
        self.records_read += 1;
    }
}

/// Returns whether data that no checkpoint covers was written after a position.
pub(crate) fn has_data_after(
    storage: &dyn ReadStorage,
    dir: &Path,
    position: &LogPosition,
) -> Result<bool, EvidenceError> {
    let begins = |name: &str, offset: u64| -> Result<bool, EvidenceError> {
        let path = dir.join(name);
        let file = match storage.open(&path) {
            Ok(file) => file,
            // The segment was renamed. The next check finds it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(EvidenceError::io("open", &path)(error)),
        };
        let mut bytes = [0; 8];
        read_full(&*file, &mut bytes, offset).map_err(EvidenceError::io("read", &path))?;
        Ok(bytes != [0; 8])
    };
    Ok(begins(&segment_name(position.segment), position.offset)?
        || begins(&segment_name(position.size), 0)?
        || begins(&prepared_name(position.segments), 0)?)
}

/// Describes the files and bytes that are missing up to a position, according to file names and
/// lengths.
pub(crate) fn missing_files(
    storage: &dyn ReadStorage,
    dir: &Path,
    position: &LogPosition,
) -> Result<Option<String>, EvidenceError> {
    let names = storage.list(dir).map_err(EvidenceError::io("list", dir))?;
    let segments = names
        .iter()
        .filter_map(|name| SegmentName::parse(name))
        .filter(|name| matches!(name, SegmentName::FirstSeq(first) if *first <= position.segment))
        .count() as u64;
    if segments < position.segments {
        return Ok(Some(format!(
            "there were {} segments, but only {segments} are present",
            position.segments
        )));
    }
    let path = dir.join(segment_name(position.segment));
    let file = match storage.open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Some(format!(
                "the segment of record {} is missing",
                position.segment
            )));
        }
        Err(error) => return Err(EvidenceError::io("open", &path)(error)),
    };
    let len = file.len().map_err(EvidenceError::io("stat", &path))?;
    Ok((len < position.offset).then(|| {
        format!(
            "the last segment is {len} bytes long, but its records occupied {} bytes",
            position.offset
        )
    }))
}

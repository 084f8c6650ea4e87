//! Reads a log on from where it was left, up to a size that somebody has signed, and never beyond: what is not signed may
//! still be torn or in flight.

use crate::facts::LogFacts;
use proofgate_evidence::frame::frame_bytes;
use proofgate_evidence::log_reader::{Flaw, LogItem, LogReader, ResumePlace};
use proofgate_evidence::segment::{SegmentName, prepared_name, segment_name};
use proofgate_evidence::{EvidenceError, ReadStorage, Ulid, read_full};
use proofgate_ledger::{Hash, LedgerError, Mmr, leaf_hash};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A place in a log, and what the records before it come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Point {
    /// Records before it.
    pub(crate) size: u64,
    /// Peaks of their tree, the oldest first.
    #[serde(with = "crate::text::hashes")]
    pub(crate) peaks: Vec<Hash>,
    /// Number of the first record of the segment that it is in.
    pub(crate) segment: u64,
    /// Where the next frame starts in that.
    pub(crate) offset: u64,
    /// Payload CRC of the record before.
    pub(crate) chain: u32,
    /// Segments up to here.
    pub(crate) segments: u64,
}

/// A reading of a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail {
    mmr: Mmr,
    place: Option<ResumePlace>,
    segments: u64,
    pub(crate) facts: LogFacts,
}

/// How far a reading came.
pub(crate) enum Step {
    /// To the size.
    Reached,
    /// The budget is used up.
    Paused,
    /// The log ends before.
    Short,
    /// What stands there is no record of this log.
    Flawed(Flaw),
    /// A record that does not belong there.
    Refused(String),
}

impl Tail {
    /// Goes on from a place.
    pub(crate) fn at(point: &Point, facts: LogFacts) -> Result<Self, LedgerError> {
        if point.size == 0 {
            return Ok(Self::default());
        }
        Ok(Self {
            mmr: Mmr::from_peaks(point.size, point.peaks.clone())?,
            place: Some(ResumePlace {
                segment: point.segment,
                offset: point.offset,
                seq: point.size,
                chain: point.chain,
            }),
            segments: point.segments,
            facts,
        })
    }

    /// Where it is; `None` before the first record.
    pub(crate) fn point(&self) -> Option<Point> {
        let place = self.place?;
        Some(Point {
            size: self.mmr.size(),
            peaks: self.mmr.peaks().to_vec(),
            segment: place.segment,
            offset: place.offset,
            chain: place.chain,
            segments: self.segments,
        })
    }

    pub(crate) fn size(&self) -> u64 {
        self.mmr.size()
    }

    pub(crate) fn root(&self) -> Hash {
        self.mmr.root()
    }

    /// Reads up to `size` records in all, or until `budget` bytes are used up. What was read before a flaw stays read, so
    /// that a second look begins there.
    pub(crate) fn advance(
        &mut self,
        storage: &dyn ReadStorage,
        dir: &Path,
        incarnation: Ulid,
        size: u64,
        budget: &mut Budget,
    ) -> Result<Step, EvidenceError> {
        if self.mmr.size() >= size {
            return Ok(Step::Reached);
        }
        let mut log = LogReader::open(storage, dir, incarnation)?;
        log.search_within(UNSIGNED_BYTES);
        if budget.signed {
            log.expect(size);
            log.search_within(SEARCH);
        }
        if let Some(place) = &self.place
            && let Some(flaw) = log.start_at(place)?
        {
            return Ok(Step::Flawed(flaw));
        }
        let (mut step, mut place, mut residue) = (Step::Reached, self.place, false);
        while self.mmr.size() < size {
            // Only at a record, where the next reading goes on.
            if budget.is_spent() && !residue {
                step = Step::Paused;
                break;
            }
            let found = log.next()?;
            budget.left = budget.left.saturating_sub(log.take_searched());
            residue = matches!(&found, LogItem::Flaw(flaw) if flaw.residue);
            step = match found {
                LogItem::Record(stored) => {
                    let payload = log.payload(&stored);
                    match self.facts.take(stored.seq, payload) {
                        Ok(()) => {
                            self.mmr.push(leaf_hash(payload), &mut |_| {});
                            budget.spend(frame_bytes(stored.len));
                            place = log.resume_place();
                            continue;
                        }
                        Err(message) => Step::Refused(message),
                    }
                }
                LogItem::Flaw(_) if residue => continue,
                LogItem::Flaw(flaw) => Step::Flawed(flaw),
                LogItem::End => Step::Short,
            };
            break;
        }
        if self.mmr.size() == size {
            step = Step::Reached;
        }
        self.place = place;
        self.segments = log.segments().max(self.segments);
        Ok(step)
    }
}

/// Bytes of a log that was signed that are looked through for the next record: two segments, as most are.
const SEARCH: u64 = 64 << 20;
/// Bytes that are read of a log that nobody signed.
const UNSIGNED_BYTES: u64 = 1 << 20;
/// What a look at one costs beside that: its checkpoint, some files and a listing.
const UNSIGNED_LOOK: u64 = 64 << 10;

/// How much may be read, and how much was.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Budget {
    /// Bytes of records, and of what was looked through for records.
    left: u64,
    /// For a log that somebody signed.
    signed: bool,
    pub(crate) bytes: u64,
    pub(crate) records: u64,
}

impl Budget {
    pub(crate) fn of(bytes: u64) -> Self {
        Self {
            left: bytes,
            signed: true,
            ..Self::default()
        }
    }

    /// For a log that nobody signed.
    pub(crate) fn unsigned() -> Self {
        Self {
            signed: false,
            ..Self::of(UNSIGNED_BYTES)
        }
    }

    /// Takes off what a look with a budget of its own took.
    pub(crate) fn charge(&mut self, unsigned: &Self) {
        let read = UNSIGNED_BYTES.saturating_sub(unsigned.left);
        self.left = self.left.saturating_sub(UNSIGNED_LOOK + read);
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.left == 0
    }

    fn spend(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
        self.bytes += bytes;
        self.records += 1;
    }
}

/// Whether something was written behind a place that no checkpoint covers.
pub(crate) fn is_written_behind(
    storage: &dyn ReadStorage,
    dir: &Path,
    point: &Point,
) -> Result<bool, EvidenceError> {
    let begins = |name: &str, offset: u64| -> Result<bool, EvidenceError> {
        let path = dir.join(name);
        let file = match storage.open(&path) {
            Ok(file) => file,
            // It was renamed: the next look sees it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(EvidenceError::io("open", &path)(error)),
        };
        let mut bytes = [0; 8];
        read_full(&*file, &mut bytes, offset).map_err(EvidenceError::io("read", &path))?;
        Ok(bytes != [0; 8])
    };
    Ok(begins(&segment_name(point.segment), point.offset)?
        || begins(&segment_name(point.size), 0)?
        || begins(&prepared_name(point.segments), 0)?)
}

/// What is missing of the files up to a place, in words, as far as names and lengths tell.
pub(crate) fn missing_files(
    storage: &dyn ReadStorage,
    dir: &Path,
    point: &Point,
) -> Result<Option<String>, EvidenceError> {
    let names = storage.list(dir).map_err(EvidenceError::io("list", dir))?;
    let segments = names
        .iter()
        .filter_map(|name| SegmentName::parse(name))
        .filter(|name| matches!(name, SegmentName::First(first) if *first <= point.segment))
        .count() as u64;
    if segments < point.segments {
        return Ok(Some(format!(
            "there were {} segments, but only {segments} are there",
            point.segments
        )));
    }
    let path = dir.join(segment_name(point.segment));
    let file = match storage.open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Some(format!(
                "the segment of record {} is missing",
                point.segment
            )));
        }
        Err(error) => return Err(EvidenceError::io("open", &path)(error)),
    };
    let len = file.len().map_err(EvidenceError::io("stat", &path))?;
    Ok((len < point.offset).then(|| {
        format!(
            "the last segment is {len} bytes long, but its records took {} bytes",
            point.offset
        )
    }))
}

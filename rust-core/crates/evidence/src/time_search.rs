//! Finds the position of a time, or of a record number, in a log without reading the whole log:
//! with a binary search over the first records of segments, and then within one segment.
//!
//! Records are roughly in the order of their times. After a clock was set back, this order does not
//! hold, and the found position is one of several. A caller that must be certain reads the whole
//! log.

use crate::segment::SegmentName;
use crate::segment_reader::{SegmentReader, Slot};
use crate::segments::{self, OpenSegment};
use crate::{EvidenceError, ReadStorage};
use proofgate_ledger::record;
use std::io;
use std::path::Path;
use ulid::Ulid;

/// Number of bytes at which the binary search stops, because reading them costs less than another
/// seek.
const MIN_SEARCH_BYTES: u64 = 64 << 10;
/// Length of a range that, in a segment in use, always contains the start of a frame.
const MAX_FRAME_GAP: u64 = 2 * (record::MAX_RECORD_BYTES as u64 + 64);

/// A position at which to start reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartPosition {
    pub(crate) segment: SegmentName,
    pub(crate) offset: u64,
    pub(crate) seq: u64,
}

/// Returns a position before which all records are older than `micros`; `None` for the start of the log.
pub(crate) fn find_start(
    storage: &dyn ReadStorage,
    dir: &Path,
    incarnation: Ulid,
    micros: u64,
) -> Result<Option<StartPosition>, EvidenceError> {
    let segments: Vec<SegmentName> = segments::list(storage, dir)?.into();
    let (mut from, mut to) = (0, segments.len());
    let mut found = None;
    while from < to {
        let middle = from + (to - from) / 2;
        let first = match OpenSegment::open(storage, dir, segments[middle]) {
            Ok(segment) => first_record(&segment, incarnation)?,
            Err(error) if segments::is_not_found(&error) => None,
            Err(error) => return Err(error),
        };
        match first {
            Some((ts, reader, seq)) if ts < micros => {
                found = Some((segments[middle], reader, seq));
                from = middle + 1;
            }
            // Treat a segment that is not in use yet, or cannot be read, as later.
            _ => to = middle,
        }
    }
    let Some((segment, mut reader, first)) = found else {
        return Ok(None);
    };
    let older = |ts: u64, _| ts < micros;
    let before = find_in_segment(&mut reader, older).map_err(EvidenceError::io("read", dir))?;
    let (offset, seq) = before.unwrap_or((crate::frame::SEGMENT_HEADER_LEN as u64, first));
    Ok(Some(StartPosition { segment, offset, seq }))
}

type FirstRecord = (u64, SegmentReader, u64);

/// Returns the time of a segment's first record, a reader for the segment, and the record's number.
fn first_record(segment: &OpenSegment, incarnation: Ulid) -> Result<Option<FirstRecord>, EvidenceError> {
    let Ok(header) = &segment.header else {
        return Ok(None);
    };
    let mut reader = segment.reader(incarnation, header.ordinal);
    let first = (|| {
        Ok(match reader.next()? {
            Slot::Record(stored) => record::parse(reader.payload(&stored))
                .ok()
                .map(|record| (record.ts(), stored.seq)),
            _ => None,
        })
    })();
    let first = first.map_err(EvidenceError::io("read", &segment.path))?;
    Ok(first.map(|(ts, seq)| (ts, reader, seq)))
}

/// Returns a position at or shortly before record `seq`, in the segment that holds this record;
/// `None` when the file names do not show which segment holds it.
pub(crate) fn find_record_position(
    storage: &dyn ReadStorage,
    dir: &Path,
    incarnation: Ulid,
    seq: u64,
) -> Result<Option<StartPosition>, EvidenceError> {
    let holds = |name: &SegmentName| matches!(name, SegmentName::FirstSeq(first) if *first <= seq);
    let segments = segments::list(storage, dir)?;
    let Some(name) = segments.into_iter().rfind(holds) else {
        return Ok(None);
    };
    let segment = match OpenSegment::open(storage, dir, name) {
        Err(error) if segments::is_not_found(&error) => return Ok(None),
        opened => opened?,
    };
    let Some((_, mut reader, first)) = first_record(&segment, incarnation)? else {
        return Ok(None);
    };
    let before = find_in_segment(&mut reader, |_, at| at <= seq).map_err(EvidenceError::io("read", dir))?;
    let (offset, seq) = before.unwrap_or((crate::frame::SEGMENT_HEADER_LEN as u64, first));
    Ok(Some(StartPosition {
        segment: name,
        offset,
        seq,
    }))
}

/// Returns the offset and number of a record of one segment, near the first record for which
/// `before` returns false. `before` returns true for the returned record; its arguments are the
/// time in microseconds and the record number.
fn find_in_segment(
    reader: &mut SegmentReader,
    before: impl Fn(u64, u64) -> bool,
) -> io::Result<Option<(u64, u64)>> {
    let (mut from, mut to) = (crate::frame::SEGMENT_HEADER_LEN as u64, reader.len());
    let mut found = None;
    while to.saturating_sub(from) > MIN_SEARCH_BYTES {
        let middle = from + (to - from) / 2;
        let at = match reader.resync_within(middle, 0, MAX_FRAME_GAP)? {
            Some((at, seq)) if at < to => Some((at, seq)),
            _ => None,
        };
        let Some((at, seq)) = at else {
            to = middle;
            continue;
        };
        reader.offset = at;
        let ts = match reader.next()? {
            Slot::Record(stored) => record::parse(reader.payload(&stored))
                .ok()
                .map(|record| record.ts()),
            _ => None,
        };
        match ts {
            Some(ts) if before(ts, seq) => {
                found = Some((at, seq));
                from = at;
            }
            _ => to = middle,
        }
    }
    Ok(found)
}

/// Returns the time in a request id, in unix milliseconds. Request ids of Proofgate are version 7
/// UUIDs after `req_` (RFC 9562 section 5.7). `None` for any other id.
pub(crate) fn request_time(request_id: &str) -> Option<u64> {
    let hex = request_id.strip_prefix("req_").unwrap_or(request_id);
    let digits: String = hex.chars().filter(|c| *c != '-').collect();
    let version7 = digits.len() == 32 && digits.as_bytes().get(12) == Some(&b'7');
    version7.then(|| u64::from_str_radix(digits.get(..12)?, 16).ok())?
}

/// Returns the incarnations of a shard that may hold records from `from` milliseconds on, oldest
/// first: the newest incarnation that began before this time, and all later incarnations.
pub(crate) fn incarnations_from(incarnations: &[Ulid], from: u64) -> &[Ulid] {
    let later = incarnations.partition_point(|incarnation| incarnation.timestamp_ms() <= from);
    &incarnations[later.saturating_sub(1)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_read_from_version_7_ids_only() {
        assert_eq!(
            request_time("req_0199a1b2c3d47abc8def0123456789ab"),
            Some(0x0199_a1b2_c3d4)
        );
        assert_eq!(
            request_time("0199a1b2-c3d4-7abc-8def-0123456789ab"),
            Some(0x0199_a1b2_c3d4)
        );
        for other in [
            "",
            "req-1",
            "req_0199a1b2c3d44abc8def0123456789ab",
            "req_zz99a1b2c3d47abc8def0123456789ab",
        ] {
            assert_eq!(request_time(other), None, "{other}");
        }
    }

    #[test]
    fn the_log_that_was_being_written_is_the_first_that_is_looked_into() {
        let logs: Vec<Ulid> = [10, 20, 30].map(|ms| Ulid::from_parts(ms, 1)).to_vec();
        assert_eq!(incarnations_from(&logs, 5), &logs[..]);
        assert_eq!(incarnations_from(&logs, 10), &logs[..]);
        assert_eq!(incarnations_from(&logs, 25), &logs[1..]);
        assert_eq!(incarnations_from(&logs, 99), &logs[2..]);
        assert_eq!(incarnations_from(&[], 5), &[]);
    }
}

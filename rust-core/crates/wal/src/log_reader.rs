//! Reads an incarnation's log back: strings the segments of its directory together, tells what is wrong with them, and
//! goes on behind damage. Recovery, `fsck`, proofs and exports read through it.

use crate::WalError;
use crate::frame::{SEGMENT_HEADER, SegmentHeader, SegmentKey};
use crate::segment::SegmentName;
use crate::segment_reader::{SegmentReader, Slot, Stored};
use crate::storage::{Storage, StoredFile, read_full};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ulid::Ulid;

/// A stretch of a log that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) path: PathBuf,
    /// First byte concerned.
    pub(crate) offset: u64,
    /// Number of the record that was expected there.
    pub(crate) seq: u64,
    pub(crate) reason: String,
    /// Bytes behind the last record of a segment: no record is missing if the log goes on with `seq`.
    pub(crate) residue: bool,
}

/// What a [`LogReader`] finds next.
pub(crate) enum Found {
    /// A record. Its number is the one expected, or follows a [`Found::Flaw`].
    Record(Stored),
    /// Something is wrong here; reading goes on behind it.
    Flaw(Flaw),
    /// The end of the last segment.
    End,
}

/// One segment of a directory.
struct SegmentFile {
    path: PathBuf,
    file: Arc<dyn StoredFile>,
    len: u64,
    name: SegmentName,
    ordinal: u64,
    header: Result<SegmentHeader, &'static str>,
}

/// Reads all records of an incarnation's directory in order.
pub(crate) struct LogReader {
    incarnation: Ulid,
    segments: Vec<SegmentFile>,
    /// Index of the segment being read.
    at: usize,
    reader: Option<SegmentReader>,
    expected: u64,
    /// What the next record must chain to; unknown behind a flaw.
    chain: Option<u32>,
}

impl LogReader {
    /// Finds the segments of an incarnation's directory, whose name must be its ULID. With `from_disk`, they are synced
    /// and dropped from the page cache first, so that what is read is what the disk holds.
    pub(crate) fn open(
        storage: &dyn Storage,
        dir: &Path,
        incarnation: Ulid,
        from_disk: bool,
    ) -> Result<Self, WalError> {
        let mut segments = open_segments(storage, dir, from_disk)?;
        // Names sort by number, so a segment whose header is gone still finds its place.
        let mut position = 0;
        for segment in &mut segments {
            segment.ordinal = match (&segment.header, segment.name) {
                (Ok(header), _) => header.ordinal,
                (Err(_), SegmentName::Prepared(ordinal)) => ordinal,
                (Err(_), SegmentName::First(_)) => position,
            };
            position = segment.ordinal.saturating_add(1);
        }
        segments.sort_by_key(|segment| segment.ordinal);
        Ok(Self {
            incarnation,
            segments,
            at: 0,
            reader: None,
            expected: 0,
            chain: None,
        })
    }

    /// The origin digest of the first segment whose header can be read.
    pub(crate) fn origin(&self) -> Option<[u8; 32]> {
        self.segments
            .iter()
            .find_map(|segment| segment.header.as_ref().ok())
            .map(|header| header.origin)
    }

    /// Number of segments found.
    pub(crate) fn segments(&self) -> usize {
        self.segments.len()
    }

    /// From where on a segment of this log holds nothing but zeros: 0 for a prepared one that was never written. `None`
    /// for one that others follow, and where something stands behind the last record.
    pub(crate) fn unused_from(&self, path: &Path) -> Result<Option<u64>, WalError> {
        let Some(at) = self.segments.iter().position(|segment| segment.path == path) else {
            return Ok(Some(0));
        };
        let segment = &self.segments[at];
        if at + 1 < self.segments.len() {
            return Ok(None);
        }
        let failed = WalError::io("read", path);
        let key = SegmentKey::new(self.incarnation, segment.ordinal);
        let mut reader = SegmentReader::new(Arc::clone(&segment.file), key, segment.len);
        let whole = (|| {
            while let Slot::Record(_) = reader.next()? {}
            let end = reader.offset;
            Ok(reader.first_nonzero(end)?.is_none().then_some(end))
        })();
        whole.map_err(failed)
    }

    /// Starts with the segment that holds record `seq`, if the segment headers tell. Call it before `next`.
    pub(crate) fn seek(&mut self, seq: u64) {
        let first_seq = |segment: &SegmentFile| segment.header.as_ref().map_or(0, |header| header.first_seq);
        if let Some(at) = self
            .segments
            .iter()
            .rposition(|segment| first_seq(segment) <= seq)
        {
            self.at = at;
            self.expected = self.segments.get(at).map_or(0, first_seq);
        }
    }

    /// The path of the segment that the last record was in.
    pub(crate) fn path(&self) -> &Path {
        self.segments
            .get(self.at)
            .map_or(Path::new(""), |segment| &segment.path)
    }

    /// The next record or flaw.
    pub(crate) fn next(&mut self) -> Result<Found, WalError> {
        loop {
            let Some(segment) = self.segments.get(self.at) else {
                return Ok(Found::End);
            };
            let Some(reader) = &mut self.reader else {
                if let Some(flaw) = self.enter() {
                    return Ok(Found::Flaw(flaw));
                }
                continue;
            };
            let failed = WalError::io("read", &segment.path);
            let from = reader.offset;
            let stored = match reader.next() {
                Ok(Slot::Record(stored)) => stored,
                Ok(Slot::Empty) => {
                    match tail(reader, from, self.expected).map_err(failed)? {
                        Some(flaw) => return Ok(Found::Flaw(self.pass(flaw))),
                        None => self.leave(),
                    }
                    continue;
                }
                Ok(Slot::Bad(reason)) => {
                    let found = reader.resync(from + 8, self.expected).map_err(failed)?;
                    let flaw = Skipped {
                        offset: from,
                        reason,
                        found,
                        residue: false,
                    };
                    return Ok(Found::Flaw(self.pass(flaw)));
                }
                Err(error) => return Err(failed(error)),
            };
            let seq = stored.seq;
            let misplaced = match seq.cmp(&self.expected) {
                std::cmp::Ordering::Less => Some("a record is repeated"),
                std::cmp::Ordering::Greater => Some("records are missing before this one"),
                std::cmp::Ordering::Equal if self.chain.is_some_and(|chain| chain != stored.prev_crc) => {
                    Some("the record does not chain to the one before")
                }
                std::cmp::Ordering::Equal => None,
            };
            if let Some(reason) = misplaced {
                let flaw = Flaw {
                    path: segment.path.clone(),
                    offset: from,
                    seq: self.expected,
                    reason: format!("{reason}: found record {seq}, expected {}", self.expected),
                    residue: false,
                };
                if seq >= self.expected {
                    self.expected = seq;
                    self.chain = None;
                    reader.offset = from;
                }
                return Ok(Found::Flaw(flaw));
            }
            self.expected = seq + 1;
            self.chain = Some(stored.crc);
            return Ok(Found::Record(stored));
        }
    }

    /// The payload of the record that `next` has just returned.
    pub(crate) fn payload(&self, stored: &Stored) -> &[u8] {
        self.reader.as_ref().map_or(&[], |reader| reader.payload(stored))
    }

    fn leave(&mut self) {
        self.reader = None;
        self.at += 1;
    }

    /// Starts on the current segment; a flaw of its header is told once, and its frames are read all the same.
    fn enter(&mut self) -> Option<Flaw> {
        let segment = self.segments.get(self.at)?;
        let key = SegmentKey::new(self.incarnation, segment.ordinal);
        self.reader = Some(SegmentReader::new(Arc::clone(&segment.file), key, segment.len));
        let expected = self.expected;
        let reason = match &segment.header {
            Err(reason) => (*reason).to_owned(),
            Ok(header) if header.incarnation != self.incarnation => {
                format!("the segment belongs to incarnation {}", header.incarnation)
            }
            Ok(header) if header.ordinal != self.at as u64 => {
                format!(
                    "segment {} stands where segment {} belongs",
                    header.ordinal, self.at
                )
            }
            Ok(header)
                if segment.name != SegmentName::Prepared(header.ordinal)
                    && segment.name != SegmentName::First(header.first_seq) =>
            {
                "the segment has another's name".to_owned()
            }
            Ok(header) if self.origin().is_some_and(|origin| origin != header.origin) => {
                "the segment belongs to another origin".to_owned()
            }
            Ok(header) if header.first_seq != expected => {
                format!(
                    "the segment starts with record {}, expected {expected}",
                    header.first_seq
                )
            }
            Ok(header) => {
                if header.first_seq == 0 {
                    self.chain = Some(header.crc());
                }
                return None;
            }
        };
        let path = segment.path.clone();
        self.chain = None;
        Some(Flaw {
            path,
            offset: 0,
            seq: expected,
            reason,
            residue: false,
        })
    }

    /// Moves behind a flaw: to the next whole record, or to the next segment.
    fn pass(&mut self, skipped: Skipped) -> Flaw {
        let path = self.path().to_owned();
        let expected = self.expected;
        let reason = match skipped.found {
            Some((at, seq)) if seq > expected => {
                format!(
                    "{}; records {expected} to {} are lost, byte {at} goes on",
                    skipped.reason,
                    seq - 1
                )
            }
            Some((at, _)) => format!("{}; byte {at} goes on", skipped.reason),
            None => skipped.reason.to_owned(),
        };
        match (skipped.found, &mut self.reader) {
            (Some((at, seq)), Some(reader)) => {
                reader.offset = at;
                self.expected = seq;
                self.chain = None;
            }
            _ => {
                if !skipped.residue {
                    self.chain = None;
                }
                self.leave();
            }
        }
        Flaw {
            path,
            offset: skipped.offset,
            seq: expected,
            reason,
            residue: skipped.residue,
        }
    }
}

struct Skipped {
    offset: u64,
    reason: &'static str,
    /// Where the next whole record stands, and its number.
    found: Option<(u64, u64)>,
    residue: bool,
}

/// Looks behind the last record of a segment, where only zeros belong.
fn tail(reader: &mut SegmentReader, from: u64, expected: u64) -> io::Result<Option<Skipped>> {
    let Some(nonzero) = reader.first_nonzero(from)? else {
        return Ok(None);
    };
    Ok(Some(match reader.resync(from, expected)? {
        Some(found) => Skipped {
            offset: from,
            reason: "zeros stand where records belong",
            found: Some(found),
            residue: false,
        },
        None => Skipped {
            offset: nonzero,
            reason: "bytes behind the last record are not zero",
            found: None,
            residue: true,
        },
    }))
}

fn open_segments(storage: &dyn Storage, dir: &Path, from_disk: bool) -> Result<Vec<SegmentFile>, WalError> {
    let mut attempts = 0;
    'list: loop {
        attempts += 1;
        let mut segments = Vec::new();
        for name in storage.list(dir).map_err(WalError::io("list", dir))? {
            let Some(parsed) = SegmentName::parse(&name) else {
                continue;
            };
            match open_segment(storage, &dir.join(name), parsed, from_disk) {
                Ok(segment) => segments.extend(segment),
                // The ledger thread of a live log renames a prepared segment when it enters it.
                Err(WalError::Io {
                    call: "open", source, ..
                }) if source.kind() == io::ErrorKind::NotFound && attempts < 4 => {
                    continue 'list;
                }
                Err(error) => return Err(error),
            }
        }
        return Ok(segments);
    }
}

/// Opens a segment and reads its header; `None` for a prepared one that was never written.
fn open_segment(
    storage: &dyn Storage,
    path: &Path,
    name: SegmentName,
    from_disk: bool,
) -> Result<Option<SegmentFile>, WalError> {
    let file = storage.open(path).map_err(WalError::io("open", path))?;
    if from_disk {
        file.sync().map_err(WalError::io("sync", path))?;
        file.drop_cache().map_err(WalError::io("drop cache", path))?;
    }
    let len = file.len().map_err(WalError::io("stat", path))?;
    let mut bytes = [0; SEGMENT_HEADER];
    let read = read_full(&*file, &mut bytes, 0).map_err(WalError::io("read", path))?;
    let header = SegmentHeader::decode(&bytes[..read]);
    if header.is_err() && bytes.iter().all(|byte| *byte == 0) {
        let mut rest = SegmentReader::new(Arc::clone(&file), SegmentKey::new(Ulid::nil(), 0), len);
        if rest
            .first_nonzero(0)
            .map_err(WalError::io("read", path))?
            .is_none()
        {
            return Ok(None);
        }
    }
    Ok(Some(SegmentFile {
        path: path.to_owned(),
        file,
        len,
        name,
        ordinal: 0,
        header,
    }))
}

//! Lists the segments of an incarnation's directory in order, and opens them.

use crate::frame::{SEGMENT_HEADER_LEN, SegmentCrc, SegmentHeader};
use crate::segment::{MAX_SEGMENT_BYTES, SegmentName, prepared_name, segment_name};
use crate::segment_reader::{SegmentReader, Slot};
use crate::{EvidenceError, ReadFile, ReadStorage, read_full};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ulid::Ulid;

/// Most repeated listings of a directory after a listed file was missing when it was opened.
pub(crate) const MAX_LISTINGS: u32 = 16;

/// Most prepared segments of a log. A writer has only a few of them.
pub(crate) const MAX_PREPARED: usize = 64;

/// Returns the path of a segment.
pub(crate) fn segment_path(dir: &Path, name: SegmentName) -> PathBuf {
    dir.join(match name {
        SegmentName::FirstSeq(first) => segment_name(first),
        SegmentName::Prepared(ordinal) => prepared_name(ordinal),
    })
}

/// Returns whether an error means that a file does not exist or no longer exists. The ledger thread
/// of a running log renames a prepared segment when it first reads from it.
pub(crate) fn is_not_found(error: &EvidenceError) -> bool {
    matches!(error, EvidenceError::Io { call: "open", source, .. } if source.kind() == io::ErrorKind::NotFound)
}

/// Lists the segments of a directory in the order of their records. The file name gives the
/// position of most segments. For a prepared segment, only its header gives the position, and
/// prepared segments that are not in use yet come last.
pub(crate) fn list(storage: &dyn ReadStorage, dir: &Path) -> Result<VecDeque<SegmentName>, EvidenceError> {
    let names = storage.list(dir).map_err(EvidenceError::io("list", dir))?;
    let names: Vec<SegmentName> = names.iter().filter_map(|name| SegmentName::parse(name)).collect();
    let is_prepared = |name: &&SegmentName| matches!(name, SegmentName::Prepared(_));
    let prepared = names.iter().filter(is_prepared).count();
    if prepared > MAX_PREPARED {
        return Err(EvidenceError::Corruption {
            path: dir.to_owned(),
            offset: 0,
            reason: format!("there are too many prepared segments: {prepared}"),
        });
    }
    let mut placed = Vec::new();
    for name in names {
        let place = match name {
            SegmentName::FirstSeq(first) => (first, 0),
            SegmentName::Prepared(ordinal) => match OpenSegment::open(storage, dir, name) {
                Ok(OpenSegment {
                    header: Ok(header), ..
                }) => (header.first_seq, ordinal),
                Ok(_) => (u64::MAX, ordinal),
                Err(error) if is_not_found(&error) => (u64::MAX, ordinal),
                Err(error) => return Err(error),
            },
        };
        placed.push((place, name));
    }
    placed.sort_unstable_by_key(|(place, _)| *place);
    Ok(placed.into_iter().map(|(_, name)| name).collect())
}

/// An open segment and its header.
pub(crate) struct OpenSegment {
    pub(crate) name: SegmentName,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn ReadFile>,
    /// Number of bytes of the segment that are read.
    pub(crate) len: u64,
    pub(crate) header: Result<SegmentHeader, &'static str>,
    is_blank: bool,
}

impl OpenSegment {
    pub(crate) fn open(
        storage: &dyn ReadStorage,
        dir: &Path,
        name: SegmentName,
    ) -> Result<Self, EvidenceError> {
        let path = segment_path(dir, name);
        let file = storage.open(&path).map_err(EvidenceError::io("open", &path))?;
        let len = file.len().map_err(EvidenceError::io("stat", &path))?;
        let mut segment = Self {
            name,
            path,
            file,
            len: len.min(MAX_SEGMENT_BYTES),
            header: Err("the file is longer than a segment can be"),
            is_blank: false,
        };
        if len <= MAX_SEGMENT_BYTES {
            segment.read_header()?;
        }
        Ok(segment)
    }

    fn read_header(&mut self) -> Result<(), EvidenceError> {
        let mut bytes = [0; SEGMENT_HEADER_LEN];
        let read = read_full(&*self.file, &mut bytes, 0).map_err(EvidenceError::io("read", &self.path))?;
        self.header = SegmentHeader::decode(&bytes[..read]);
        self.is_blank = bytes.iter().all(|byte| *byte == 0);
        Ok(())
    }

    /// Returns whether the segment has data within the next `search` bytes. If the header was
    /// blank, it is read again, because the writer may have started the segment in the meantime.
    pub(crate) fn is_in_use(&mut self, search: &mut u64) -> Result<bool, EvidenceError> {
        if !self.is_blank {
            return Ok(true);
        }
        let mut rest = self.reader(Ulid::nil(), 0);
        rest.search_budget = *search;
        let written = rest
            .first_nonzero(0)
            .map_err(EvidenceError::io("read", &self.path))?;
        *search = rest.search_budget;
        if written.is_some() {
            self.read_header()?;
        }
        Ok(written.is_some())
    }

    /// Returns a reader for the frames of the segment, as segment `ordinal` of an incarnation.
    pub(crate) fn reader(&self, incarnation: Ulid, ordinal: u64) -> SegmentReader {
        let key = SegmentCrc::new(incarnation, ordinal);
        SegmentReader::new(Arc::clone(&self.file), key, self.len)
    }
}

/// Returns the segments of an ended log with allocated space that the writer did not use. For each
/// segment, returns the offset after which it holds only zeros; 0 if the segment was never started.
/// A segment with other bytes after its last record is omitted.
///
/// # Errors
/// [`EvidenceError::Io`].
pub fn unused_segment_space(
    storage: &dyn ReadStorage,
    dir: &Path,
    incarnation: Ulid,
) -> Result<Vec<(PathBuf, u64)>, EvidenceError> {
    let (mut unused, mut search) = (Vec::new(), u64::MAX);
    let segments = list(storage, dir)?;
    for (position, name) in segments.into_iter().enumerate().rev() {
        let mut segment = OpenSegment::open(storage, dir, name)?;
        if !segment.is_in_use(&mut search)? {
            unused.push((segment.path, 0));
            continue;
        }
        let ordinal = segment
            .header
            .as_ref()
            .map_or(position as u64, |header| header.ordinal);
        let mut reader = segment.reader(incarnation, ordinal);
        let end = (|| {
            while let Slot::Record(_) = reader.next()? {}
            let end = reader.offset;
            Ok(reader.first_nonzero(end)?.is_none().then_some(end))
        })();
        let end = end.map_err(EvidenceError::io("read", &segment.path))?;
        unused.extend(end.map(|end| (segment.path, end)));
        break;
    }
    Ok(unused)
}

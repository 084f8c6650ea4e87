//! Prepares segments ahead of the writer, so that it never creates, allocates or syncs a file.

use crate::segment_queue::{Segment, SegmentQueue};
use crate::storage::{Directory, Storage, StoredFile, is_out_of_space, write_full};
use crate::{WalError, Watermark};
use proofgate_evidence::segment::prepared_name;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The outcome of one attempt to prepare a segment.
#[derive(Debug)]
pub enum Preparation {
    /// Enough segments are prepared.
    Sufficient,
    /// A segment was prepared and passed to the writer.
    Prepared,
    /// A segment is partly prepared; call again to continue.
    InProgress,
    /// There is no space, or the file could not be created. Try again later: until a segment is
    /// prepared, `Writer::reserve` returns `OutOfSpace` once all remaining capacity is reserved.
    NoSpace(WalError),
}

pub(crate) struct Preparer {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) dir: PathBuf,
    pub(crate) segment_bytes: u64,
    pub(crate) segments_ahead: u64,
    pub(crate) next_ordinal: u64,
    pub(crate) queue: Arc<SegmentQueue>,
    pub(crate) watermark: Arc<Watermark>,
    /// The segment that is partly prepared.
    pub(crate) in_progress: Option<Allocation>,
}

impl Preparer {
    /// Prepares at most one segment and writes at most about `most` bytes of it. If a segment is
    /// returned, the writer has also received it.
    pub(crate) fn prepare(&mut self, most: u64) -> (Preparation, Option<Arc<Segment>>) {
        if self.watermark.is_poisoned() || self.next_ordinal > self.watermark.segment() + self.segments_ahead
        {
            return (Preparation::Sufficient, None);
        }
        let path = self.dir.join(prepared_name(self.next_ordinal));
        let file = match self.advance(&path, most) {
            Ok(Some(file)) => file,
            Ok(None) => return (Preparation::InProgress, None),
            Err(error) => {
                // The partial file holds no records, and the next attempt needs its name.
                if self.in_progress.take().is_some() {
                    let _ = self.storage.remove(&path);
                }
                return (Preparation::NoSpace(error), None);
            }
        };
        let segment = Arc::new(Segment {
            ordinal: self.next_ordinal,
            bytes: self.segment_bytes,
            file,
        });
        self.next_ordinal += 1;
        self.queue.push(Arc::clone(&segment));
        (Preparation::Prepared, Some(segment))
    }

    /// Continues the segment at `path`; returns its file once it is durable.
    fn advance(&mut self, path: &Path, most: u64) -> Result<Option<Arc<dyn StoredFile>>, WalError> {
        let begun = match self.in_progress.take() {
            Some(begun) => begun,
            None => self.start(path)?,
        };
        let begun = self.in_progress.insert(begun);
        let mut most = most;
        while most > 0 && begun.remaining() > 0 {
            let step = begun.advance(path, most.min(ZERO_SYNC_BYTES))?;
            most = most.saturating_sub(step);
            if begun.unsynced >= ZERO_SYNC_BYTES {
                check_sync(&self.watermark, begun.file.sync(), path)?;
                begun.unsynced = 0;
            }
        }
        if begun.remaining() > 0 {
            return Ok(None);
        }
        check_sync(&self.watermark, begun.file.sync(), path)?;
        check_sync(&self.watermark, self.directory.sync(), &self.dir)?;
        Ok(self.in_progress.take().map(|done| done.file))
    }

    fn start(&self, path: &Path) -> Result<Allocation, WalError> {
        // A failed attempt temporarily uses space that other files on the volume need, so check the
        // free space first. If the file system cannot report it, try the allocation.
        let bytes = self
            .segment_bytes
            .saturating_add(self.segment_bytes / SEGMENT_TO_SIDE_FILES_RATIO);
        if self.directory.free_bytes().is_ok_and(|free| free < bytes) {
            return Err(WalError::OutOfSpace { bytes });
        }
        Allocation::start(&*self.storage, path, self.segment_bytes).inspect_err(|_| {
            let _ = self.storage.remove(path);
        })
    }
}

/// Converts the result of a sync and stops the log on failure, except on lack of space, which a
/// network file system may report as late as at the sync.
fn check_sync(watermark: &Watermark, result: io::Result<()>, path: &Path) -> Result<(), WalError> {
    result.map_err(|error| {
        let no_space = is_out_of_space(&error);
        let error = WalError::io("sync", path)(error);
        if !no_space {
            watermark.poison(error.to_string());
        }
        error
    })
}

/// Ratio of a segment's size to the size of its records' salts and tree nodes, which take 96 bytes
/// for a record of about 400.
const SEGMENT_TO_SIDE_FILES_RATIO: u64 = 4;

/// Size of one write of zeros.
const ZERO_CHUNK: usize = 64 << 10;

/// Number of written zeros after which they are synced. A larger sync would occupy the processor
/// for milliseconds.
const ZERO_SYNC_BYTES: u64 = 4 << 20;

/// A file that is being filled with zeros.
///
/// The zeros are written, not only allocated: on ext4, a sync that converts unwritten extents to written ones blocks
/// the writer's `pwrite`.
pub(crate) struct Allocation {
    file: Arc<dyn StoredFile>,
    bytes: u64,
    offset: u64,
    unsynced: u64,
}

impl Allocation {
    fn start(storage: &dyn Storage, path: &Path, bytes: u64) -> Result<Self, WalError> {
        let file = storage.create(path).map_err(WalError::io("create", path))?;
        file.allocate(bytes).map_err(WalError::io("allocate", path))?;
        Ok(Self {
            file,
            bytes,
            offset: 0,
            unsynced: 0,
        })
    }

    fn remaining(&self) -> u64 {
        self.bytes - self.offset
    }

    /// Writes about `most` bytes, at least one chunk, or the rest if it is shorter. Returns the
    /// number of bytes written.
    fn advance(&mut self, path: &Path, most: u64) -> Result<u64, WalError> {
        static ZERO: [u8; ZERO_CHUNK] = [0; ZERO_CHUNK];
        let first = self.offset;
        while self.remaining() > 0 && (self.offset == first || self.offset - first < most) {
            let piece = usize::try_from(self.remaining())
                .unwrap_or(ZERO_CHUNK)
                .min(ZERO_CHUNK);
            write_full(&*self.file, &ZERO[..piece], self.offset).map_err(WalError::io("write", path))?;
            self.offset += piece as u64;
        }
        self.unsynced += self.offset - first;
        Ok(self.offset - first)
    }
}

/// Creates a file of `bytes` allocated zero bytes without syncing it.
pub(crate) fn create_allocated(
    storage: &dyn Storage,
    path: &Path,
    bytes: u64,
) -> Result<Arc<dyn StoredFile>, WalError> {
    let mut allocation = Allocation::start(storage, path, bytes)?;
    allocation.advance(path, bytes)?;
    Ok(allocation.file)
}

//! Prepares segments ahead of the writer, so that it never creates, allocates or syncs a file.

use crate::hand_over::{HandOver, Segment};
use crate::storage::{Directory, Storage, StoredFile, is_no_space, write_full};
use crate::{WalError, Watermark};
use proofgate_evidence::segment::prepared_name;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What one attempt at preparing a segment came to.
#[derive(Debug)]
pub enum Preparation {
    /// Enough segments are prepared.
    Enough,
    /// A segment was prepared and handed to the writer.
    Prepared,
    /// There is no space, or the file could not be made: try again later. Until then `Writer::reserve` says `Full`
    /// once the room that is left is spoken for.
    Starved(WalError),
}

pub(crate) struct Preparer {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) dir: PathBuf,
    pub(crate) segment_bytes: u64,
    pub(crate) ahead: u64,
    pub(crate) next_ordinal: u64,
    pub(crate) hand_over: Arc<HandOver>,
    pub(crate) watermark: Arc<Watermark>,
}

impl Preparer {
    /// Prepares at most one segment. The returned segment has also been handed to the writer.
    pub(crate) fn prepare(&mut self) -> (Preparation, Option<Arc<Segment>>) {
        if self.watermark.is_poisoned() || self.next_ordinal > self.watermark.segment() + self.ahead {
            return (Preparation::Enough, None);
        }
        // An attempt that fails has taken, for a while, what other files of the volume need. Where the file system cannot
        // tell, there is no other way to know.
        let bytes = self
            .segment_bytes
            .saturating_add(self.segment_bytes / SEGMENT_TO_SALTS_AND_TREE);
        if self.directory.free().is_ok_and(|free| free < bytes) {
            return (Preparation::Starved(WalError::Full { bytes }), None);
        }
        let path = self.dir.join(prepared_name(self.next_ordinal));
        match self.make(&path) {
            Ok(file) => {
                let segment = Arc::new(Segment {
                    ordinal: self.next_ordinal,
                    bytes: self.segment_bytes,
                    file,
                });
                self.next_ordinal += 1;
                self.hand_over.give(Arc::clone(&segment));
                (Preparation::Prepared, Some(segment))
            }
            Err(error) => {
                // What is left of the attempt holds nothing; the next attempt needs the name.
                let _ = self.storage.remove(&path);
                (Preparation::Starved(error), None)
            }
        }
    }

    fn make(&self, path: &Path) -> Result<Arc<dyn StoredFile>, WalError> {
        let file = create_allocated(&*self.storage, path, self.segment_bytes)?;
        self.synced(file.sync(), path)?;
        self.synced(self.directory.sync(), &self.dir)?;
        Ok(file)
    }

    /// A sync may report a lack of space late (network file systems do); any other failure stops the log.
    fn synced(&self, result: io::Result<()>, path: &Path) -> Result<(), WalError> {
        result.map_err(|error| {
            let no_space = is_no_space(&error);
            let error = WalError::io("sync", path)(error);
            if !no_space {
                self.watermark.poison(error.to_string());
            }
            error
        })
    }
}

/// Salts and tree take a quarter of a segment for the records in it: 96 bytes for one of about 400.
const SEGMENT_TO_SALTS_AND_TREE: u64 = 4;

/// Zeros are written in pieces of this size.
const ZEROS: usize = 256 << 10;

/// Creates a file of `bytes` allocated zero bytes; not yet synced.
///
/// The zeros are written and not only allocated: a sync that turns unwritten extents into written ones makes the
/// writer's `pwrite` wait (ext4).
pub(crate) fn create_allocated(
    storage: &dyn Storage,
    path: &Path,
    bytes: u64,
) -> Result<Arc<dyn StoredFile>, WalError> {
    let file = storage.create(path).map_err(WalError::io("create", path))?;
    file.allocate(bytes).map_err(WalError::io("allocate", path))?;
    let zeros = vec![0; usize::try_from(bytes).unwrap_or(ZEROS).min(ZEROS)];
    let mut at = 0;
    while at < bytes {
        let piece = usize::try_from(bytes - at).unwrap_or(ZEROS).min(zeros.len());
        write_full(&*file, &zeros[..piece], at).map_err(WalError::io("write", path))?;
        at += piece as u64;
    }
    Ok(file)
}

//! Files outside the logs that records refer to. They must be on the disk before those records count as durable.

use crate::StoredFile;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The list of files written since their last sync. The writer of a file adds it before it appends
/// the record that refers to it; the [`Follower`](crate::Follower) syncs the file before that
/// record counts as durable.
#[derive(Default)]
pub struct UnsyncedFiles(Mutex<Vec<(Arc<dyn StoredFile>, PathBuf)>>);

impl std::fmt::Debug for UnsyncedFiles {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Unsynced")
    }
}

impl UnsyncedFiles {
    /// Adds a written file; `path` is for messages.
    pub fn add(&self, file: &Arc<dyn StoredFile>, path: &Path) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Only few files are written at a time, mostly those of one log, so a linear search is
        // fast.
        if !files.iter().any(|(known, _)| Arc::ptr_eq(known, file)) {
            files.push((Arc::clone(file), path.to_owned()));
        }
    }

    /// Takes the files added so far.
    pub(crate) fn take(&self) -> Vec<(Arc<dyn StoredFile>, PathBuf)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

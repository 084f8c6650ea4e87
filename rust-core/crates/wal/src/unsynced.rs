//! Files beside logs of which records speak: they must be on the disk before those records count as durable.

use crate::StoredFile;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files that were written and not synced since. Whoever writes one adds it before the record that speaks of it is appended;
/// the [`Follower`](crate::Follower) syncs it before that record is durable.
#[derive(Default)]
pub struct UnsyncedFiles(Mutex<Vec<(Arc<dyn StoredFile>, PathBuf)>>);

impl std::fmt::Debug for UnsyncedFiles {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Unsynced")
    }
}

impl UnsyncedFiles {
    /// Adds a file that was written, with its path for messages.
    pub fn add(&self, file: &Arc<dyn StoredFile>, path: &Path) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Few files are written at a time, those of one log for the most part.
        if !files.iter().any(|(known, _)| Arc::ptr_eq(known, file)) {
            files.push((Arc::clone(file), path.to_owned()));
        }
    }

    /// Takes what was added.
    pub(crate) fn take(&self) -> Vec<(Arc<dyn StoredFile>, PathBuf)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

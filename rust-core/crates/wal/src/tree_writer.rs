//! Writes the `tree` file.
//!
//! The file is derived from the records, so a missing or short tree file costs time but loses no
//! data. If there is no space for the tree file, the log continues without it.

use crate::WalError;
use crate::storage::{StoredFile, is_out_of_space, write_full};
use proofgate_evidence::TreeFile;
use proofgate_ledger::Hash;
use std::path::PathBuf;
use std::sync::Arc;

/// Most bytes of nodes that wait for space. Beyond this limit, the tree file is no longer extended.
const MAX_PENDING: usize = 4 << 20;

/// A writer that appends nodes to a tree file.
pub(crate) struct TreeWriter {
    file: Arc<dyn StoredFile>,
    path: PathBuf,
    pending: Vec<u8>,
    written: u64,
    dirty: bool,
    /// Whether nodes after the written ones are missing.
    incomplete: bool,
}

impl TreeWriter {
    pub(crate) fn new(file: Arc<dyn StoredFile>, path: PathBuf) -> Self {
        Self {
            file,
            path,
            pending: Vec::new(),
            written: 0,
            dirty: false,
            incomplete: false,
        }
    }

    pub(crate) fn push(&mut self, node: Hash) {
        if !self.incomplete {
            self.pending.extend_from_slice(&node);
        }
    }

    /// Writes the pending nodes. If there is no space, they remain pending, or are dropped beyond
    /// [`MAX_PENDING`].
    ///
    /// # Errors
    /// [`EvidenceError::Io`](crate::EvidenceError::Io) when the write fails for another reason.
    pub(crate) fn flush(&mut self) -> Result<(), WalError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.dirty = true;
        match write_full(&*self.file, &self.pending, self.written) {
            Ok(()) => {
                self.written += self.pending.len() as u64;
                self.pending.clear();
            }
            Err(error) if is_out_of_space(&error) => {
                if self.pending.len() > MAX_PENDING {
                    self.incomplete = true;
                    self.pending = Vec::new();
                }
            }
            Err(error) => return Err(WalError::io("write", &self.path)(error)),
        }
        Ok(())
    }

    /// Makes the written nodes durable.
    pub(crate) fn sync(&mut self) -> Result<(), WalError> {
        if self.dirty {
            self.file.sync().map_err(WalError::io("sync", &self.path))?;
            self.dirty = false;
        }
        Ok(())
    }

    pub(crate) fn reader(&self) -> TreeFile {
        TreeFile::new(Arc::clone(&self.file) as _, self.path.clone())
    }
}

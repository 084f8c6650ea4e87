//! The `tree` file: node hashes of the range in flat post-order, 32 bytes each. Leaf n stands at `2n - popcount(n)`.
//!
//! It is derived from the records: a missing or short tree file costs time and loses nothing.

use crate::storage::{StoredFile, is_no_space, read_full, write_full};
use crate::{Storage, WalError};
use proofgate_ledger::{Hash, LedgerError, NodeReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the file.
pub(crate) const TREE: &str = "tree";
/// Bytes of a node.
pub(crate) const NODE: usize = 32;

/// Reads nodes of a stored tree, also while the ledger thread appends to it.
#[derive(Clone)]
pub struct TreeFile {
    file: Arc<dyn StoredFile>,
    path: PathBuf,
}

impl std::fmt::Debug for TreeFile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("TreeFile").field(&self.path).finish()
    }
}

impl TreeFile {
    /// Opens the tree file of an incarnation's directory.
    ///
    /// # Errors
    /// [`WalError::Io`].
    pub fn open(storage: &dyn Storage, incarnation_dir: &Path) -> Result<Self, WalError> {
        let path = incarnation_dir.join(TREE);
        let file = storage.open(&path).map_err(WalError::io("open", &path))?;
        Ok(Self { file, path })
    }

    /// Number of whole nodes stored.
    ///
    /// # Errors
    /// [`WalError::Io`].
    pub fn nodes(&self) -> Result<u64, WalError> {
        Ok(self.file.len().map_err(WalError::io("stat", &self.path))? / NODE as u64)
    }
}

impl NodeReader for TreeFile {
    type Error = WalError;

    fn node(&self, position: u64) -> Result<Hash, WalError> {
        let missing = LedgerError::MissingNode { position };
        let offset = position.checked_mul(NODE as u64).ok_or(missing.clone())?;
        let mut hash = [0; NODE];
        let read = read_full(&*self.file, &mut hash, offset).map_err(WalError::io("read", &self.path))?;
        if read == NODE {
            Ok(hash)
        } else {
            Err(missing.into())
        }
    }
}

/// Appends nodes to a tree file.
pub(crate) struct TreeWriter {
    file: Arc<dyn StoredFile>,
    path: PathBuf,
    pending: Vec<u8>,
    written: u64,
    dirty: bool,
}

impl TreeWriter {
    pub(crate) fn new(file: Arc<dyn StoredFile>, path: PathBuf) -> Self {
        Self {
            file,
            path,
            pending: Vec::new(),
            written: 0,
            dirty: false,
        }
    }

    pub(crate) fn push(&mut self, node: Hash) {
        self.pending.extend_from_slice(&node);
    }

    /// Bytes not yet written.
    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Writes what is pending. Without space it stays pending: `Full`.
    pub(crate) fn flush(&mut self) -> Result<(), WalError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.dirty = true;
        let bytes = self.pending.len() as u64;
        write_full(&*self.file, &self.pending, self.written).map_err(|error| {
            if is_no_space(&error) {
                WalError::Full { bytes }
            } else {
                WalError::io("write", &self.path)(error)
            }
        })?;
        self.written += bytes;
        self.pending.clear();
        Ok(())
    }

    /// Makes what is written durable.
    pub(crate) fn sync(&mut self) -> Result<(), WalError> {
        if self.dirty {
            self.file.sync().map_err(WalError::io("sync", &self.path))?;
            self.dirty = false;
        }
        Ok(())
    }

    pub(crate) fn reader(&self) -> TreeFile {
        TreeFile {
            file: Arc::clone(&self.file),
            path: self.path.clone(),
        }
    }
}

//! The `tree` file: node hashes of the range in flat post-order, 32 bytes each. Leaf n is at `2n - popcount(n)`.
//!
//! The file is derived from the records. A missing or short file costs only time.

use crate::{EvidenceError, ReadFile, ReadStorage, read_full};
use proofgate_ledger::{Hash, LedgerError, NodeReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the tree file.
pub const TREE_FILE: &str = "tree";
/// Bytes per node.
pub const NODE_LEN: usize = 32;

/// A reader of the nodes of a stored tree. The ledger thread may append to the file concurrently.
#[derive(Clone)]
pub struct TreeFile {
    file: Arc<dyn ReadFile>,
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
    /// [`EvidenceError::Io`].
    pub fn open(storage: &dyn ReadStorage, incarnation_dir: &Path) -> Result<Self, EvidenceError> {
        let path = incarnation_dir.join(TREE_FILE);
        let file = storage.open(&path).map_err(EvidenceError::io("open", &path))?;
        Ok(Self { file, path })
    }

    /// Creates a reader from `file`, an open tree file. `path` is for messages.
    #[must_use]
    pub fn new(file: Arc<dyn ReadFile>, path: PathBuf) -> Self {
        Self { file, path }
    }

    /// Returns the number of whole nodes stored.
    ///
    /// # Errors
    /// [`EvidenceError::Io`].
    pub fn node_count(&self) -> Result<u64, EvidenceError> {
        Ok(self.file.len().map_err(EvidenceError::io("stat", &self.path))? / NODE_LEN as u64)
    }
}

impl NodeReader for TreeFile {
    type Error = EvidenceError;

    fn node(&self, position: u64) -> Result<Hash, EvidenceError> {
        let missing = LedgerError::MissingNode { position };
        let offset = position.checked_mul(NODE_LEN as u64).ok_or(missing.clone())?;
        let mut hash = [0; NODE_LEN];
        let read =
            read_full(&*self.file, &mut hash, offset).map_err(EvidenceError::io("read", &self.path))?;
        if read == NODE_LEN {
            Ok(hash)
        } else {
            Err(missing.into())
        }
    }
}

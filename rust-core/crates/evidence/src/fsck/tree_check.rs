//! Checks the `tree` file against the records.

use crate::report::TreeState;
use crate::tree_file::{NODE_LEN, TREE_FILE};
use crate::{EvidenceError, ReadFile, ReadStorage, read_full};
use proofgate_ledger::{Hash, Mmr};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A comparison of a tree file with the tree nodes that follow from the records.
pub(super) struct TreeCheck {
    path: PathBuf,
    file: Option<Arc<dyn ReadFile>>,
    pub(super) nodes: u64,
    position: u64,
    window: Vec<u8>,
    window_at: u64,
    pub(super) mismatch: bool,
}

impl TreeCheck {
    /// Creates the check for a log that has no tree file by design.
    pub(super) fn without_file() -> Self {
        Self {
            path: PathBuf::new(),
            file: None,
            nodes: 0,
            position: 0,
            window: Vec::new(),
            window_at: 0,
            mismatch: false,
        }
    }

    pub(super) fn open(storage: &dyn ReadStorage, dir: &Path) -> Result<Self, EvidenceError> {
        let path = dir.join(TREE_FILE);
        let file = match storage.open(&path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(EvidenceError::io("open", &path)(error)),
        };
        let nodes = match &file {
            Some(file) => file.len().map_err(EvidenceError::io("stat", &path))? / NODE_LEN as u64,
            None => 0,
        };
        Ok(Self {
            path,
            file,
            nodes,
            ..Self::without_file()
        })
    }

    /// Pushes a leaf and compares the nodes that it completes. Returns the position of the first
    /// wrong node.
    pub(super) fn push(&mut self, mmr: &mut Mmr, leaf: Hash) -> Result<Option<u64>, EvidenceError> {
        let mut wrong = Ok(None);
        mmr.push(leaf, &mut |node| match self.matches_stored(&node) {
            Ok(true) => {}
            Ok(false) => {
                if let Ok(first @ None) = &mut wrong {
                    *first = Some(self.position - 1);
                }
            }
            Err(error) => wrong = Err(error),
        });
        wrong.map_err(EvidenceError::io("read", &self.path))
    }

    fn matches_stored(&mut self, node: &Hash) -> io::Result<bool> {
        let at = self.position;
        self.position += 1;
        let Some(file) = self.file.as_ref().filter(|_| at < self.nodes) else {
            return Ok(true);
        };
        let offset = at * NODE_LEN as u64;
        if offset + NODE_LEN as u64 > self.window_at + self.window.len() as u64 {
            self.window.resize(256 << 10, 0);
            self.window_at = offset;
            let read = read_full(&**file, &mut self.window, offset)?;
            self.window.truncate(read);
        }
        let start = (offset - self.window_at) as usize;
        let same = self.window.get(start..start + NODE_LEN) == Some(node.as_slice());
        self.mismatch |= !same;
        Ok(same)
    }

    pub(super) fn state(&self, expected: u64) -> TreeState {
        match &self.file {
            None => TreeState::Missing,
            Some(_) if self.mismatch => TreeState::Bad,
            Some(_) if self.nodes < expected => TreeState::Short,
            Some(_) if self.nodes > expected => TreeState::Long,
            Some(_) => TreeState::Complete,
        }
    }
}

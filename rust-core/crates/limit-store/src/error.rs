//! What can go wrong between consumption and the disk.

use std::io;
use std::path::{Path, PathBuf};

/// Why the store could not be opened, or the own file not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitStoreError {
    /// A storage call failed; the text names the call and the file. The file before stays; the next write tries again.
    #[error("{call} {}: {source}", path.display())]
    Io {
        /// What was attempted: `write`, `sync`, `rename`, …
        call: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// More subjects consume than one file may hold.
    #[error(
        "the usage of {subjects} tenants and keys needs {bytes} bytes, more than the maximum file size ({limit})"
    )]
    TooLarge {
        /// Tenants and keys.
        subjects: usize,
        /// Encoded size in bytes.
        bytes: usize,
        /// Largest size in bytes.
        limit: usize,
    },
}

impl LimitStoreError {
    pub(crate) fn io(call: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            call,
            path: path.to_owned(),
            source,
        }
    }
}

/// A file or directory of another incarnation that could not be read or believed; told once, until it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

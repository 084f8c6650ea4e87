//! Errors and problems of the store.

use std::io;
use std::path::{Path, PathBuf};

/// The error returned when the store cannot be opened or its own file cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitStoreError {
    /// A storage call failed; the message names the call and the file. The previous file stays, and the next write retries.
    #[error("{call} {}: {source}", path.display())]
    Io {
        /// The call that failed: `write`, `sync`, `rename`, …
        call: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There are more subjects than one file can hold.
    #[error(
        "the usage of {subjects} tenants and keys needs {bytes} bytes, more than the maximum file size ({limit})"
    )]
    TooLarge {
        /// Number of tenants and keys.
        subjects: usize,
        /// Encoded size in bytes.
        bytes: usize,
        /// Maximum size in bytes.
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

/// A file or directory of another incarnation that could not be read or is damaged; reported once, until it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

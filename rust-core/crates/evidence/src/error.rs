//! Errors of reading stored evidence.

use crate::refusal::Refusal;
use proofgate_ledger::LedgerError;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why stored evidence could not be read or verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvidenceError {
    /// A storage call failed; the text names the call and the file.
    #[error("{call} {}: {source}", path.display())]
    Io {
        /// Name of the call: `read`, `open`, `list`, …
        call: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The stored log contradicts data that is known to be durable or signed. Do not continue or
    /// truncate the log; run `fsck`.
    #[error("CORRUPTION in {} at byte {offset}: {reason}", path.display())]
    Corruption {
        /// The file.
        path: PathBuf,
        /// Byte offset in the file.
        offset: u64,
        /// Description of the contradiction.
        reason: String,
    },
    /// `prove`: the record exists, but no checkpoint covers it yet.
    #[error("record {seq} is not covered by the checkpoint of {size} records in {}", dir.display())]
    NotCovered {
        /// The incarnation's directory.
        dir: PathBuf,
        /// Requested record number.
        seq: u64,
        /// Number of records that the incarnation's checkpoint covers; 0 without a checkpoint.
        size: u64,
    },
    /// `prove`: the incarnation has no record with this number.
    #[error("there is no record {seq} in {}", dir.display())]
    NoSuchRecord {
        /// The incarnation's directory.
        dir: PathBuf,
        /// Requested record number.
        seq: u64,
    },
    /// The requested log was removed by the retention job; its tombstone states when and why.
    #[error("the log in {} was removed: read the tombstone in that directory", .0.display())]
    Removed(PathBuf),
    /// A note in a file of notes is refused.
    #[error("{}: note {number}: {reason}", file.display())]
    InvalidNote {
        /// The file.
        file: PathBuf,
        /// Number of the note, from 1.
        number: usize,
        /// The reason.
        reason: Refusal,
    },
    /// `consistency`: two checkpoints are not one history, for the reason in the text.
    #[error("the checkpoints are not consistent: {0}")]
    Inconsistent(String),
    /// A file does not hold valid shred keys. The message contains no part of the file.
    #[error("{}: {reason}", path.display())]
    ShredKeys {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A path is neither an incarnation, nor a shard, nor a gateway directory.
    #[error("{} contains no log", .0.display())]
    NotALog(PathBuf),
    /// A record, checkpoint, key or proof was refused.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl EvidenceError {
    /// Wraps a failed storage call.
    pub fn io(call: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            call,
            path: path.to_owned(),
            source,
        }
    }

    /// Returns whether stored data was changed or cannot be read. Anyone who can write to the
    /// volume can cause such an error, and other data may still be intact. All other errors mean
    /// that the storage fails or that the request cannot be met.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        use io::ErrorKind::{InvalidData, IsADirectory, NotADirectory, NotFound, PermissionDenied};
        match self {
            Self::Corruption { .. } => true,
            Self::Io { call, source, .. } => {
                let is_another_kind = matches!(
                    source.kind(),
                    InvalidData | IsADirectory | NotADirectory | NotFound | PermissionDenied
                );
                // A block is lost, or a link leads to something unreadable.
                is_another_kind || (*call == "read" && Errno::from_io_error(source) == Some(Errno::IO))
            }
            _ => false,
        }
    }

    /// Returns the stable machine code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            // The stored file is not part of any log. The storage did not fail, and a retry does
            // not help.
            Self::Io { source, .. } if source.kind() == io::ErrorKind::InvalidData => "ledger_corrupt",
            Self::Io { .. } => "ledger_io",
            Self::Corruption { .. } => "ledger_corrupt",
            Self::NotCovered { .. } => "record_not_covered",
            Self::NoSuchRecord { .. } => "no_such_record",
            Self::Removed(_) => "log_removed",
            Self::InvalidNote { reason, .. } if reason.wrong_key => LedgerError::WRONG_KEY,
            Self::InvalidNote { .. } => "bad_note",
            Self::Inconsistent(_) => "inconsistent",
            Self::ShredKeys { .. } => "shred_keys_malformed",
            Self::NotALog(_) => "not_a_log",
            Self::Ledger(error) => error.code(),
        }
    }
}

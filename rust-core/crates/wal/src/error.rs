//! Everything that can go wrong between a record and the disk.

use proofgate_ledger::LedgerError;
use std::io;
use std::path::{Path, PathBuf};

/// Why the log could not be written, read or believed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WalError {
    /// A storage call failed; the text names the call and the file.
    #[error("{call} {}: {source}", path.display())]
    Io {
        /// What was attempted: `write`, `sync`, `open`, …
        call: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// `reserve`, `append`, `salt`: no space that is already allocated can take it. Refuse the exchange and try later.
    #[error("no allocated space for {bytes} more bytes")]
    Full {
        /// Bytes asked for.
        bytes: u64,
    },
    /// An earlier write or sync failed: nothing is acknowledged in this incarnation any more.
    #[error("the log has stopped: {reason}")]
    Poisoned {
        /// The failure that stopped it.
        reason: String,
    },
    /// A record was appended after the seal.
    #[error("the log is sealed")]
    Sealed,
    /// A record does not fit a quarter of a segment, or the record limit of the ledger.
    #[error("a record of {bytes} bytes exceeds the limit of {limit} bytes")]
    RecordTooLarge {
        /// Encoded size in bytes.
        bytes: usize,
        /// Largest size in bytes.
        limit: usize,
    },
    /// `salt`: the record's salt is not at hand; only salts of records not yet appended are.
    #[error("the salt of record {seq} is not at hand")]
    SaltNotAtHand {
        /// Record number asked for.
        seq: u64,
    },
    /// `Incarnation::create`: the options or the name cannot be used; the text says why.
    #[error("cannot create an incarnation: {0}")]
    Options(String),
    /// The stored log contradicts something known to be durable or signed. It must not be opened over or truncated;
    /// run `fsck`.
    #[error("CORRUPTION in {} at byte {offset}: {reason}", path.display())]
    Corruption {
        /// The file.
        path: PathBuf,
        /// Byte offset in it.
        offset: u64,
        /// What contradicts what.
        reason: String,
    },
    /// `prove`: the record exists and no checkpoint covers it yet.
    #[error("record {seq} is not covered by the checkpoint of {size} records in {}", dir.display())]
    NotCovered {
        /// The incarnation's directory.
        dir: PathBuf,
        /// Record number asked for.
        seq: u64,
        /// Records covered by its checkpoint; 0 without one.
        size: u64,
    },
    /// `prove`: the incarnation has no record of this number.
    #[error("there is no record {seq} in {}", dir.display())]
    NoSuchRecord {
        /// The incarnation's directory.
        dir: PathBuf,
        /// Record number asked for.
        seq: u64,
    },
    /// A path is neither an incarnation, nor a shard, nor a gateway directory.
    #[error("{} holds no log", .0.display())]
    NotALog(PathBuf),
    /// A record, checkpoint, key or proof was refused.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl WalError {
    /// Wraps a failed storage call.
    pub(crate) fn io(call: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            call,
            path: path.to_owned(),
            source,
        }
    }

    /// Stable machine code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "ledger_io",
            Self::Full { .. } => "ledger_full",
            Self::Poisoned { .. } => "ledger_stopped",
            Self::Sealed => "ledger_sealed",
            Self::RecordTooLarge { .. } => "record_too_large",
            Self::SaltNotAtHand { .. } => "salt_not_at_hand",
            Self::Options(_) => "ledger_options",
            Self::Corruption { .. } => "ledger_corrupt",
            Self::NotCovered { .. } => "record_not_covered",
            Self::NoSuchRecord { .. } => "no_such_record",
            Self::NotALog(_) => "not_a_log",
            Self::Ledger(_) => "ledger_refused",
        }
    }
}

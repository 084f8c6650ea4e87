//! Everything that can go wrong between a record and the disk.

use crate::is_out_of_space;
use proofgate_evidence::EvidenceError;
use proofgate_ledger::LedgerError;
use std::io;
use std::path::Path;

/// Why the log could not be written, or what is there could not be read or believed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WalError {
    /// A storage call failed, or what is stored is refused.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// `reserve`, `append`, `salt`: no space that is already allocated can take it. Refuse the exchange and try later.
    #[error("no allocated space is left for {bytes} more bytes")]
    OutOfSpace {
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
    #[error("the salt of record {seq} is not available")]
    SaltUnavailable {
        /// Record number asked for.
        seq: u64,
    },
    /// The volume holds less than is known, from a checkpoint held elsewhere, to have been there, or something else in its
    /// place. Nothing may be signed over it; bring the newer volume back, or decide that the loss is accepted and remove
    /// the held checkpoint.
    #[error(
        "the ledger is behind the checkpoint held outside: {size} records of {origin} were signed, but {found}"
    )]
    LedgerBehind {
        /// The log.
        origin: String,
        /// Its number of records, as signed.
        size: u64,
        /// What is there now.
        found: String,
    },
    /// Another key follows the ledger's key, which may begin no log any more. Give the worker the new one.
    #[error(
        "the ledger's key expired at {until} (unix microseconds): another key has succeeded it, so it cannot start a new log"
    )]
    KeySuperseded {
        /// The last moment at which it could, in unix microseconds.
        until: u64,
    },
    /// `Incarnation::create`: the options or the name cannot be used; the text says why.
    #[error("cannot create an incarnation: {0}")]
    InvalidOptions(String),
}

impl From<LedgerError> for WalError {
    fn from(error: LedgerError) -> Self {
        Self::Evidence(error.into())
    }
}

impl WalError {
    /// Wraps a failed storage call.
    pub(crate) fn io(call: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let wrap = EvidenceError::io(call, path);
        move |source| Self::Evidence(wrap(source))
    }

    /// Whether a file system had no room, which passes.
    #[must_use]
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::OutOfSpace { .. } => true,
            Self::Evidence(EvidenceError::Io { source, .. }) => is_out_of_space(source),
            _ => false,
        }
    }

    /// Whether a signer of another process gave no signature, which it may give later.
    #[must_use]
    pub fn is_signer_failure(&self) -> bool {
        matches!(
            self,
            Self::Evidence(EvidenceError::Ledger(LedgerError::SignerFailed(_)))
        )
    }

    /// Stable machine code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Evidence(error) => error.code(),
            Self::OutOfSpace { .. } => "ledger_full",
            Self::Poisoned { .. } => "ledger_stopped",
            Self::Sealed => "ledger_sealed",
            Self::RecordTooLarge { .. } => "record_too_large",
            Self::SaltUnavailable { .. } => "salt_not_at_hand",
            Self::LedgerBehind { .. } => "ledger_behind",
            Self::KeySuperseded { .. } => "key_ended",
            Self::InvalidOptions(_) => "ledger_options",
        }
    }
}

//! Errors of writing, reading and verifying logs.

use crate::is_out_of_space;
use proofgate_evidence::EvidenceError;
use proofgate_ledger::LedgerError;
use std::io;
use std::path::Path;

/// The reason why the log could not be written, or stored data could not be read or verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WalError {
    /// A storage call failed, or stored data was refused.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// `reserve`, `append` or `salt` found no allocated space left. Refuse the exchange and try
    /// again later.
    #[error("no allocated space is left for {bytes} more bytes")]
    OutOfSpace {
        /// Requested bytes.
        bytes: u64,
    },
    /// An earlier write or sync failed, so this incarnation acknowledges no more records.
    #[error("the log has stopped: {reason}")]
    Poisoned {
        /// The failure that stopped it.
        reason: String,
    },
    /// A record was appended after the seal.
    #[error("the log is sealed")]
    Sealed,
    /// A record exceeds a quarter of a segment, or the ledger's record limit.
    #[error("a record of {bytes} bytes exceeds the limit of {limit} bytes")]
    RecordTooLarge {
        /// Encoded size in bytes.
        bytes: usize,
        /// Largest size in bytes.
        limit: usize,
    },
    /// `salt`: the record's salt is not in memory. Only salts of records not yet appended are in
    /// memory.
    #[error("the salt of record {seq} is not available")]
    SaltUnavailable {
        /// Requested record number.
        seq: u64,
    },
    /// The volume holds fewer records than a checkpoint stored outside it covers, or different
    /// records. Nothing may be signed over this volume. Restore the newer volume, or accept the
    /// loss and remove the stored checkpoint.
    #[error(
        "the ledger is behind the checkpoint held outside the ledger: {size} records of {origin} were signed, but {found}"
    )]
    LedgerBehind {
        /// Origin of the log.
        origin: String,
        /// Number of records that were signed.
        size: u64,
        /// Description of the records on the volume.
        found: String,
    },
    /// The ledger's key has been succeeded by another key and may not start a log any more.
    /// Configure the worker with the new key.
    #[error(
        "the ledger's key expired at {until} (unix microseconds): another key has succeeded it, so it cannot start a new log"
    )]
    KeySuperseded {
        /// The last moment at which the key could start a log, in unix microseconds.
        until: u64,
    },
    /// `Incarnation::create`: the options or the name are invalid, for the reason in the text.
    #[error("cannot create a log: {0}")]
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

    /// Returns whether a file system was out of space, which is temporary.
    #[must_use]
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::OutOfSpace { .. } => true,
            Self::Evidence(EvidenceError::Io { source, .. }) => is_out_of_space(source),
            _ => false,
        }
    }

    /// Returns whether a signer in another process returned no signature; a later attempt may
    /// succeed.
    #[must_use]
    pub fn is_signer_failure(&self) -> bool {
        matches!(
            self,
            Self::Evidence(EvidenceError::Ledger(LedgerError::SignerFailed(_)))
        )
    }

    /// Returns the stable machine code of the error.
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

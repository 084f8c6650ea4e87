//! Errors of reading a log into rows.

use proofgate_evidence::EvidenceError;
use proofgate_ledger::LedgerError;

/// Why a log cannot be read further. What was returned before stays valid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The records do not lead to the signed root, or do not reach the signed size.
    #[error("{origin}: {reason}")]
    Inconsistent {
        /// The log.
        origin: String,
        /// Description of the contradiction.
        reason: String,
    },
    /// The directory belongs to another log than the checkpoint.
    #[error("the checkpoint is for {signed}, but {directory} is not the directory of that log")]
    WrongLog {
        /// The log of the checkpoint.
        signed: String,
        /// The directory.
        directory: String,
    },
    /// The cursor to resume from is invalid.
    #[error("the position to resume from is not valid: {0}")]
    InvalidCursor(&'static str),
    /// A checkpoint or a key was refused.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The volume cannot be read.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
}

impl IndexError {
    /// Stable machine code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Inconsistent { .. } => "records_contradict_checkpoint",
            Self::WrongLog { .. } => "checkpoint_foreign",
            Self::InvalidCursor(_) => "index_place",
            Self::Ledger(error) => error.code(),
            Self::Evidence(error) => error.code(),
        }
    }
}

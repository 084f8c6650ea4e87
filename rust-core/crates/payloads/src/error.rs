//! Why a body is not stored, or not opened.

use proofgate_evidence::EvidenceError;
use proofgate_ledger::LedgerError;
use proofgate_wal::is_out_of_space;

/// Why a body cannot be stored or is not handed out. No message holds anything of a body.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// It was not stored; the record or its lack says why.
    #[error("the {field} was not stored: {why}")]
    NotStored {
        /// `request` or `response`.
        field: &'static str,
        /// Why, in a word.
        why: &'static str,
    },
    /// The completion says that it was stored, and it is not there.
    #[error("the record says that the {field} was stored, but it is missing")]
    Missing {
        /// `request` or `response`.
        field: &'static str,
    },
    /// The shred key that the admission names is not among those given: it was destroyed, or is kept elsewhere.
    #[error("the shred key {id} of the tenant {tenant:?} is missing")]
    KeyMissing {
        /// The tenant.
        tenant: String,
        /// The key's id.
        id: String,
    },
    /// The half of the salt that the ledger held was erased.
    #[error("the salt of the exchange was erased, so its stored bodies can no longer be opened")]
    SaltErased,
    /// What is there is not what was sealed.
    #[error("the stored body cannot be opened: it was changed, moved, or sealed with another key")]
    Refused,
    /// It opens to something else than the record commits to.
    #[error("the stored body is not the one that the record commits to")]
    Mismatch,
    /// A body is longer than any that is stored.
    #[error("a body of {bytes} bytes is too long to be stored")]
    TooLarge {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The ledger holds no such exchange, or its log is covered by no checkpoint.
    #[error("{0}")]
    NoExchange(String),
    /// The records do not lead to what was signed.
    #[error("{0}")]
    Inconsistent(String),
    /// A file cannot be read or written, or holds what cannot be.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
}

impl From<LedgerError> for PayloadError {
    fn from(error: LedgerError) -> Self {
        Self::Evidence(error.into())
    }
}

impl PayloadError {
    /// Whether a file system had no room, which passes.
    #[must_use]
    pub fn is_out_of_space(&self) -> bool {
        matches!(self, Self::Evidence(EvidenceError::Io { source, .. }) if is_out_of_space(source))
    }

    /// Stable machine code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotStored { .. } => "payload_not_stored",
            Self::Missing { .. } => "payload_missing",
            Self::KeyMissing { .. } => "shred_key_missing",
            Self::SaltErased => "salt_erased",
            Self::Refused => "payload_refused",
            Self::Mismatch => "payload_mismatch",
            Self::TooLarge { .. } => "payload_too_large",
            Self::NoExchange(_) => "no_such_exchange",
            Self::Inconsistent(_) => "records_contradict_checkpoint",
            Self::Evidence(error) => error.code(),
        }
    }
}

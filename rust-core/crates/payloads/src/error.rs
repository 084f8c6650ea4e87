//! Errors in storing and opening bodies.

use proofgate_evidence::EvidenceError;
use proofgate_ledger::LedgerError;
use proofgate_wal::is_out_of_space;

/// The reason why a body cannot be stored or is not returned. No message contains any part of a
/// body.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The body was not stored. The reason follows from the record, or from the absence of a
    /// record.
    #[error("the {field} was not stored: {why}")]
    NotStored {
        /// `request` or `response`.
        field: &'static str,
        /// The reason, in one word.
        why: &'static str,
    },
    /// The completion states that the body was stored, but it is missing.
    #[error("the record says that the {field} was stored, but it is missing")]
    Missing {
        /// `request` or `response`.
        field: &'static str,
    },
    /// The shred key that the admission names is not among the available keys: it was destroyed, or
    /// is stored elsewhere.
    #[error("the shred key {id} of the tenant {tenant:?} is missing")]
    KeyMissing {
        /// The tenant.
        tenant: String,
        /// The key's id.
        id: String,
    },
    /// The ledger's half of the salt was erased.
    #[error("the salt of the exchange was erased, so its stored bodies can no longer be opened")]
    SaltErased,
    /// The stored bytes differ from the sealed bytes.
    #[error("the stored body cannot be opened: it was changed, moved, or sealed with another key")]
    Refused,
    /// The stored body opens, but the record commits to another body.
    #[error("the stored body does not match the commitment in the record")]
    Mismatch,
    /// The body exceeds the size limit for stored bodies.
    #[error("a body of {bytes} bytes is too long to be stored")]
    TooLarge {
        /// Length of the body in bytes.
        bytes: usize,
    },
    /// The ledger has no such exchange, or no checkpoint covers its log.
    #[error("{0}")]
    NoExchange(String),
    /// The records contradict the signed checkpoint.
    #[error("{0}")]
    Inconsistent(String),
    /// A file cannot be read or written, or its content is invalid.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
}

impl From<LedgerError> for PayloadError {
    fn from(error: LedgerError) -> Self {
        Self::Evidence(error.into())
    }
}

impl PayloadError {
    /// Returns whether a file system was out of space, which is temporary.
    #[must_use]
    pub fn is_out_of_space(&self) -> bool {
        matches!(self, Self::Evidence(EvidenceError::Io { source, .. }) if is_out_of_space(source))
    }

    /// Returns the stable machine code of the error.
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

//! Errors of the retention job. A log that is retained is not an error but a [`RetentionReason`](crate::RetentionReason).

use proofgate_evidence::EvidenceError;
use proofgate_ledger::LedgerError;
use proofgate_wal::WalError;
use std::io;

/// Why nothing could be held, removed or erased.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetentionError {
    /// A call on the retention job's own state failed.
    #[error("cannot {call} {name} in the retention job's state: {source}")]
    State {
        /// The call: `read` or `write`.
        call: &'static str,
        /// The name of the file in the state.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process uses this state.
    #[error("another command has locked this state: try again when it has finished")]
    Locked,
    /// The state does not exist.
    #[error(
        "the retention job's state is missing: it may have contained holds, so nothing is removed or erased. Restore the state. Use `hold begin` only to create the state for the first time"
    )]
    NoState,
    /// A new state was requested, but one exists.
    #[error("the retention job already has a state")]
    StateExists,
    /// The state contradicts itself, or belongs to another retention job.
    #[error("the retention job's state is not valid, so nothing is removed or erased: {name}: {reason}")]
    StateCorrupt {
        /// The file.
        name: String,
        /// Description of the contradiction.
        reason: String,
    },
    /// The retention job signed a statement about this hold, but its state does not contain it.
    #[error(
        "the retention job signed a statement of hold {0}, but the hold is not in its state: the state was rolled back, so nothing is removed or erased. Restore the newest state"
    )]
    StateRolledBack(u64),
    /// The key is not allowed as a retention key.
    #[error("{0}")]
    InvalidKey(String),
    /// There is no such hold, or it was already released.
    #[error("hold {0} does not exist or was already released")]
    NoSuchHold(u64),
    /// The request cannot be met; the text says why.
    #[error("{0}")]
    InvalidRequest(String),
    /// The ledger cannot be read or written.
    #[error(transparent)]
    Wal(#[from] WalError),
}

impl From<EvidenceError> for RetentionError {
    fn from(error: EvidenceError) -> Self {
        Self::Wal(error.into())
    }
}

impl From<LedgerError> for RetentionError {
    fn from(error: LedgerError) -> Self {
        Self::Wal(error.into())
    }
}

impl RetentionError {
    /// Wraps a failed call on the state.
    pub(crate) fn state(call: &'static str, name: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::State {
            call,
            name: name.to_owned(),
            source,
        }
    }

    /// Returns what is wrong with a log that [is damaged](EvidenceError::is_damaged). It is reported for that log, and
    /// does not stop work on others.
    ///
    /// # Errors
    /// Any other error, such as a failure of the storage, unchanged.
    pub(crate) fn into_damage(self) -> Result<String, Self> {
        match &self {
            Self::Wal(WalError::Evidence(error)) if error.is_damaged() => Ok(self.to_string()),
            _ => Err(self),
        }
    }

    pub(crate) fn corrupt(name: &str, reason: impl ToString) -> Self {
        Self::StateCorrupt {
            name: name.to_owned(),
            reason: reason.to_string(),
        }
    }

    /// Stable machine code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::State { .. } => "keeping_state_io",
            Self::Locked => "keeping_state_locked",
            Self::NoState => "keeping_state_missing",
            Self::StateExists => "keeping_state_exists",
            Self::StateCorrupt { .. } => "keeping_state_corrupt",
            Self::StateRolledBack(_) => "keeping_state_set_back",
            Self::InvalidKey(_) => "keeping_key",
            Self::NoSuchHold(_) => "no_such_hold",
            Self::InvalidRequest(_) => "keeping_invalid",
            Self::Wal(error) => error.code(),
        }
    }
}

//! Everything that keeps the retention job from its work. That a log stays is no error but a [`RetentionReason`](crate::RetentionReason).

use proofgate_evidence::EvidenceError;
use proofgate_ledger::LedgerError;
use proofgate_wal::WalError;
use std::io;

/// Why nothing could be held, removed or erased.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetentionError {
    /// A call on the retention job's own state failed.
    #[error("{call} {name} in the retention job's state: {source}")]
    State {
        /// What was attempted: `read`, `write`.
        call: &'static str,
        /// The file, by its name in the state.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else works on this state.
    #[error("another command has locked this state: try again when it has finished")]
    Locked,
    /// There is no state.
    #[error(
        "the retention job's state is missing: it may have contained holds, so nothing is removed or erased. Restore it; `hold begin` is for the first time only"
    )]
    NoState,
    /// A state was to be begun where there is one.
    #[error("the retention job already has a state")]
    StateExists,
    /// The state contradicts itself, or is another retention job's.
    #[error("the retention job's state is not valid, so nothing is removed or erased: {name}: {reason}")]
    StateCorrupt {
        /// The file.
        name: String,
        /// What contradicts what.
        reason: String,
    },
    /// The state does not have a hold that its retention job stated, by this number.
    #[error(
        "the retention job signed a statement of hold {0}, but the hold is not in its state: the state was rolled back, so nothing is removed or erased. Restore the newest state"
    )]
    StateRolledBack(u64),
    /// The key must not be a retention job's.
    #[error("{0}")]
    InvalidKey(String),
    /// There is no such hold, or it was released before.
    #[error("hold {0} does not exist or was already released")]
    NoSuchHold(u64),
    /// What was asked for cannot be; the text says why.
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

    /// What is wrong with a log of which something is [spoiled](EvidenceError::is_spoiled): that is said of this log, and keeps
    /// nobody from others.
    ///
    /// # Errors
    /// A failure of the storage, or of anything else, as it is.
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

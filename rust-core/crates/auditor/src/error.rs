//! Errors of the auditor. A problem with a ledger is not an error but a
//! [`Finding`](crate::Finding).

use proofgate_evidence::EvidenceError;
use proofgate_ledger::LedgerError;
use std::io;

/// The reason why an auditor cannot start, or could not finish a poll.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditorError {
    /// A call on the auditor's own state failed.
    #[error("cannot {call} {name} in the auditor's state: {source}")]
    State {
        /// Name of the call: `read`, `write` or `list`.
        call: &'static str,
        /// The name of the file in the state.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another auditor uses this state.
    #[error("another auditor has locked this state: only one auditor may write an aggregate log")]
    Locked,
    /// The state does not exist.
    #[error(
        "the auditor's state is empty. If it contained an aggregate log before, restore the state, or start another aggregate log under a key with another name. Otherwise holders of older checkpoints find two histories. Use --new-aggregate for the first start and to start another log"
    )]
    NoState,
    /// A new aggregate log was requested where one exists.
    #[error("the auditor's state already contains an aggregate log: start without --new-aggregate")]
    StateExists,
    /// The state contradicts itself, or belongs to another auditor.
    #[error("the auditor's state is not valid: {name}: {reason}")]
    StateCorrupt {
        /// The file.
        name: String,
        /// Description of the contradiction.
        reason: String,
    },
    /// The state is empty, but a checkpoint outside the state covers this many entries of its
    /// aggregate log.
    #[error(
        "the auditor's state is lost: {0} entries of this aggregate log are known elsewhere, but the state is empty. Restore the state from a backup, or start another aggregate log under a key with another name"
    )]
    StateLost(u64),
    /// The state does not contain the entries that a checkpoint outside the state covers.
    #[error(
        "the auditor's state was rolled back, or another auditor continues the log elsewhere: the checkpoint stored outside the state covers {0}. Restore the newest state, or start another aggregate log under a key with another name"
    )]
    StateRolledBack(String),
    /// The held checkpoint does not belong to this aggregate log.
    #[error(
        "the checkpoint stored outside the state does not belong to this aggregate log: {0}. Was the auditor's key replaced by another key with the same name?"
    )]
    HeldCheckpointRefused(String),
    /// The key is not allowed as an auditor's signing key.
    #[error("{0}")]
    InvalidKey(String),
    /// The trust policy is not valid for this aggregate log.
    #[error("the trust policy is not valid: {0}")]
    InvalidPolicy(String),
    /// An entry does not fit into a bundle.
    #[error("an entry of {0} bytes is larger than the limit of 65,535")]
    EntryTooLarge(usize),
    /// The requested entry or size is beyond the aggregate log.
    #[error("{0}")]
    OutOfRange(String),
    /// A key, note, or proof was refused.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The volume could not be read.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
}

impl AuditorError {
    /// Wraps a failed call on the state.
    pub(crate) fn state(call: &'static str, name: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::State {
            call,
            name: name.to_owned(),
            source,
        }
    }

    pub(crate) fn corrupt(name: &str, reason: impl Into<String>) -> Self {
        Self::StateCorrupt {
            name: name.to_owned(),
            reason: reason.into(),
        }
    }

    /// Returns the stable machine code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::State { .. } => "auditor_state_io",
            Self::Locked => "auditor_state_locked",
            Self::NoState => "auditor_state_missing",
            Self::StateExists => "auditor_state_exists",
            Self::StateCorrupt { .. } => "auditor_state_corrupt",
            Self::StateLost(_) => "auditor_state_lost",
            Self::StateRolledBack(_) => "auditor_state_set_back",
            Self::HeldCheckpointRefused(_) => "auditor_held_refused",
            Self::InvalidKey(_) => "auditor_key",
            Self::InvalidPolicy(_) => "auditor_policy",
            Self::EntryTooLarge(_) => "entry_too_large",
            Self::OutOfRange(_) => "out_of_range",
            Self::Ledger(error) => error.code(),
            Self::Evidence(error) => error.code(),
        }
    }
}

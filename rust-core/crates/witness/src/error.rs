//! Errors that prevent a witness from starting, and reasons to refuse a checkpoint.

use proofgate_ledger::LedgerError;
use std::io;

/// Why a witness cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WitnessError {
    /// A call on the witness's state failed.
    #[error("cannot {call} {name} in the witness's state: {source}")]
    State {
        /// The failed call: `read`, `write`, `open`.
        call: &'static str,
        /// The file, by its name in the state.
        name: String,
        /// The error of the system call.
        source: io::Error,
    },
    /// Another witness uses this state.
    #[error("another witness has locked this state: only one witness may cosign with a key")]
    Locked,
    /// The state does not exist.
    #[error(
        "the witness's state is empty. If this key has cosigned before, its state is lost: restore it, or retire the key and create another one. Otherwise the witness could cosign contradicting checkpoints. The first start needs --new-state"
    )]
    NoState,
    /// A new state was requested, but one exists.
    #[error("the witness already has a state: start without --new-state")]
    StateExists,
    /// The state contradicts itself, or belongs to another witness.
    #[error("the witness's state is not valid: {name}: {reason}")]
    StateCorrupt {
        /// The file.
        name: String,
        /// Description of the contradiction.
        reason: String,
    },
    /// The list of logs is not a C2SP tlog-list.
    #[error("list of logs, line {line}: {reason}")]
    LogList {
        /// The line number, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl WitnessError {
    /// Returns the stable machine code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::State { .. } => "witness_state_io",
            Self::Locked => "witness_state_locked",
            Self::NoState => "witness_state_missing",
            Self::StateExists => "witness_state_exists",
            Self::StateCorrupt { .. } => "witness_state_corrupt",
            Self::LogList { .. } => "witness_log_list",
        }
    }

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
}

/// Why a checkpoint is not cosigned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CosignError {
    /// The request has another format, or its old size is larger than the new one.
    #[error("{0}")]
    Malformed(String),
    /// No log of this origin is known.
    #[error("no log of this origin is known here")]
    UnknownLog,
    /// The checkpoint is not signed by the log's key.
    #[error("{0}")]
    NotSignedByLog(LedgerError),
    /// The last cosigned checkpoint has another size, or this size with another root.
    #[error("the last cosigned checkpoint has {0} entries")]
    Conflict(u64),
    /// The proof does not lead from the last cosigned checkpoint to this one.
    #[error("{0}")]
    NotConsistent(LedgerError),
    /// The witness's key returned no signature.
    #[error("{0}")]
    SignerFailed(LedgerError),
    /// The new state cannot be written.
    #[error(transparent)]
    State(#[from] WitnessError),
}

impl CosignError {
    /// Returns the status of the response (c2sp.org/tlog-witness), and a stable machine code.
    #[must_use]
    pub fn status(&self) -> (u16, &'static str) {
        match self {
            Self::Malformed(_) => (400, "malformed"),
            Self::UnknownLog => (404, "unknown_log"),
            Self::NotSignedByLog(_) => (403, "not_signed"),
            Self::Conflict(_) => (409, "conflict"),
            Self::NotConsistent(_) => (422, "not_consistent"),
            Self::SignerFailed(_) => (503, "no_signature"),
            Self::State(_) => (503, "state"),
        }
    }
}

//! What keeps a witness from starting, and why it refuses a checkpoint.

use proofgate_ledger::LedgerError;
use std::io;

/// Why a witness cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WitnessError {
    /// A call on the witness's state failed.
    #[error("{call} {name} in the witness's state: {source}")]
    State {
        /// What was attempted: `read`, `write`, `open`.
        call: &'static str,
        /// The file, by its name in the state.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// Another witness works on this state.
    #[error("another witness has locked this state: only one may cosign with a key")]
    Locked,
    /// There is no state.
    #[error(
        "the witness's state is empty. If this key has cosigned before, its state is lost: restore it, or retire the key and create another one. Otherwise the witness could cosign contradicting checkpoints. The first start needs --new-state"
    )]
    NoState,
    /// A new state was asked for where there is one.
    #[error("the witness already has a state: start without --new-state")]
    StateExists,
    /// The state contradicts itself, or is another witness's.
    #[error("the witness's state is not valid: {name}: {reason}")]
    StateCorrupt {
        /// The file.
        name: String,
        /// What contradicts what.
        reason: String,
    },
    /// The list of logs is not one of C2SP tlog-list.
    #[error("list of logs, line {line}: {reason}")]
    LogList {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl WitnessError {
    /// Stable machine code of the error.
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
    /// The request has another form, or its old size is the larger one.
    #[error("{0}")]
    Malformed(String),
    /// No log of this origin is known.
    #[error("no log of this origin is known here")]
    UnknownLog,
    /// The log's key did not sign it.
    #[error("{0}")]
    NotSigned(LedgerError),
    /// Another size was cosigned last, or this one with another root.
    #[error("the last cosigned checkpoint has {0} entries")]
    Conflict(u64),
    /// The proof does not lead from what was cosigned last to this checkpoint.
    #[error("{0}")]
    NotConsistent(LedgerError),
    /// The witness's key gives no signature.
    #[error("{0}")]
    NoSignature(LedgerError),
    /// What would be cosigned cannot be written.
    #[error(transparent)]
    State(#[from] WitnessError),
}

impl CosignError {
    /// The status of the answer (c2sp.org/tlog-witness), and a stable machine code.
    #[must_use]
    pub fn status(&self) -> (u16, &'static str) {
        match self {
            Self::Malformed(_) => (400, "malformed"),
            Self::UnknownLog => (404, "unknown_log"),
            Self::NotSigned(_) => (403, "not_signed"),
            Self::Conflict(_) => (409, "conflict"),
            Self::NotConsistent(_) => (422, "not_consistent"),
            Self::NoSignature(_) => (503, "no_signature"),
            Self::State(_) => (503, "state"),
        }
    }
}

//! Refusals of stored data.

use proofgate_ledger::LedgerError;
use std::fmt;

/// The reason for a refusal, and whether the key is that reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A description of the reason.
    pub reason: String,
    /// Whether the reason is that no signature is by the expected key. In this case it is unknown
    /// whether the data was changed.
    pub wrong_key: bool,
}

impl Refusal {
    pub(crate) fn with_context(self, of: &str) -> Self {
        Self {
            reason: format!("{of}: {}", self.reason),
            ..self
        }
    }

    /// Returns the code of the finding when the key is the reason.
    pub(crate) fn code(&self) -> Option<&'static str> {
        self.wrong_key.then_some(LedgerError::WRONG_KEY)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.reason)
    }
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self {
            reason: why,
            wrong_key: false,
        }
    }
}

impl From<LedgerError> for Refusal {
    fn from(error: LedgerError) -> Self {
        Self {
            reason: error.to_string(),
            wrong_key: error.code() == LedgerError::WRONG_KEY,
        }
    }
}

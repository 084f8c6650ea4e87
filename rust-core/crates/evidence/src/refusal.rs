//! Why something that is stored is not believed.

use proofgate_ledger::LedgerError;
use std::fmt;

/// The reason, and whether the key is it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// In words.
    pub why: String,
    /// No signature is by the key that was given. Whether anything was changed is not known then.
    pub another_key: bool,
}

impl Refusal {
    pub(crate) fn within(self, of: &str) -> Self {
        Self {
            why: format!("{of}: {}", self.why),
            ..self
        }
    }

    /// The name of a finding that is about the key.
    pub(crate) fn code(&self) -> Option<&'static str> {
        self.another_key.then_some(LedgerError::ANOTHER_KEY)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.why)
    }
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self {
            why,
            another_key: false,
        }
    }
}

impl From<LedgerError> for Refusal {
    fn from(error: LedgerError) -> Self {
        Self {
            why: error.to_string(),
            another_key: error.code() == LedgerError::ANOTHER_KEY,
        }
    }
}

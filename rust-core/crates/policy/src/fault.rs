//! Reasons why an evaluation has no result. A fault denies the exchange: a missing result never
//! counts as "no match".

use thiserror::Error;

/// An evaluation that did not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EvaluationError {
    /// The evaluation used up its CPU time, or the scanner would have to hold more of the text than
    /// its limit.
    #[error("the policy evaluation exceeded its budget")]
    BudgetExceeded,
    /// A rule panicked. The scratch was reset; the next evaluation is not affected.
    #[error("a policy rule panicked")]
    Panicked,
    /// A mistake of the caller or of this library, which the text describes.
    #[error("the policy failed: {0}")]
    Internal(&'static str),
}

impl EvaluationError {
    /// Returns the stable machine code: `policy_budget`, `policy_panic` or `policy_internal`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::BudgetExceeded => "policy_budget",
            Self::Panicked => "policy_panic",
            Self::Internal(_) => "policy_internal",
        }
    }
}

use proofgate_policy::{EvaluationError, RuleIndex};

/// The reason why a response is denied. Its held bytes may not be released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// A rule denies the response.
    #[error("a policy rule denies the answer")]
    Blocked {
        /// The rule.
        rule: RuleIndex,
        /// Whether its score denies the response, rather than the rule's own action.
        by_score: bool,
    },
    /// The response calls a guarded tool.
    #[error("the answer calls a guarded tool")]
    GuardedCall,
    /// The rules could not be evaluated: a missing result never counts as "no match".
    #[error(transparent)]
    Fault(#[from] EvaluationError),
    /// The response, one of its events, or the part of it that has to be held exceeds the limit, or it has too many texts.
    #[error("the answer is too large to be inspected")]
    TooLarge,
    /// The response cannot be read: it is not UTF-8, or begins like a JSON object but is not one.
    #[error("the answer cannot be read, so it cannot be inspected")]
    Malformed,
}

impl Denial {
    /// Returns a stable machine code.
    pub fn code(self) -> &'static str {
        match self {
            Denial::Blocked { .. } => "response_blocked",
            Denial::GuardedCall => "guarded_tool_refused",
            Denial::Fault(fault) => fault.code(),
            Denial::TooLarge => "response_too_large",
            Denial::Malformed => "response_malformed",
        }
    }
}

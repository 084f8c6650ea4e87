use proofgate_policy::{EvaluationError, RuleIndex};

/// Why an answer may not go on. None of its bytes that are still held may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// A rule denies the answer.
    #[error("a policy rule denies the answer")]
    Blocked {
        /// The rule.
        rule: RuleIndex,
        /// Whether its score denies it, and not the rule's own action.
        by_score: bool,
    },
    /// It calls a guarded tool.
    #[error("the answer calls a guarded tool")]
    GuardedCall,
    /// The rules could not be evaluated: no result is never "no match".
    #[error(transparent)]
    Fault(#[from] EvaluationError),
    /// The answer, one of its events, or what has to be held of it exceeds the limit, or it has too many texts.
    #[error("the answer is too large to be inspected")]
    TooLarge,
    /// The answer cannot be read: it is not UTF-8, or begins like a JSON object and is none.
    #[error("the answer cannot be read, so it cannot be inspected")]
    Malformed,
}

impl Denial {
    /// A stable machine code.
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

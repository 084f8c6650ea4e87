//! The verdicts of external policies, and the failures that prevent one.

use proofgate_policy::is_kebab_case;

/// Longest id of a rule or denial, in bytes; a record must have room for the id with the policy's
/// name before it.
const MAX_ID_LEN: usize = 32;
/// Longest reason shown to a client, in characters.
const MAX_REASON_CHARS: usize = 256;
/// Highest score that one verdict can add.
const MAX_SCORE: u32 = 100_000;
/// Prefix of the ids under which records list failures.
const FAILURE_ID_PREFIX: &str = "failed-";

/// A policy's answer for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The policy has no objection.
    Allow,
    /// The request is denied.
    Deny {
        /// The denial's id in the record; kebab-case, at most 32 characters.
        code: String,
        /// One sentence for the client, at most 256 characters.
        reason: String,
    },
    /// The request continues, and the finding is recorded.
    Flag {
        /// The finding's id in the record; kebab-case, at most 32 characters.
        rule: String,
        /// The amount that the finding adds to the request's score.
        score: u32,
    },
    /// The request continues with parts of its text replaced.
    Replace {
        /// The finding's id in the record; kebab-case, at most 32 characters.
        rule: String,
        /// The parts, in order.
        replacements: Vec<Replacement>,
        /// Whether the original text is restored where the replacement appears in the response.
        reversible: bool,
    },
    /// There is no verdict.
    Failed(PolicyFailure),
}

/// A part of a request's text and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// Index of the text, in the order of the request.
    pub text_index: usize,
    /// Start of the part in the text, in characters (code points).
    pub start: usize,
    /// End of the part in the text, in characters (code points).
    pub end: usize,
    /// The new text; without quotation marks, backslashes and control characters.
    pub replacement: String,
}

/// The reason why a policy returned no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyFailure {
    /// The policy's queue is full.
    QueueFull,
    /// The policy exceeded its deadline.
    Deadline,
    /// The policy raised an exception.
    Exception,
    /// The policy returned something that is not a verdict, or a verdict that does not fit the request.
    BadVerdict,
    /// Nothing evaluates the policy any more.
    Dead,
    /// The policy could not be loaded.
    NotLoaded,
    /// The policy failed so often that its breaker is open.
    BreakerOpen,
}

impl PolicyFailure {
    /// All failures, in declaration order.
    pub const ALL: [PolicyFailure; 7] = [
        PolicyFailure::QueueFull,
        PolicyFailure::Deadline,
        PolicyFailure::Exception,
        PolicyFailure::BadVerdict,
        PolicyFailure::Dead,
        PolicyFailure::NotLoaded,
        PolicyFailure::BreakerOpen,
    ];

    /// Returns its name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            PolicyFailure::QueueFull => "queue_full",
            PolicyFailure::Deadline => "deadline",
            PolicyFailure::Exception => "exception",
            PolicyFailure::BadVerdict => "bad_verdict",
            PolicyFailure::Dead => "dead",
            PolicyFailure::NotLoaded => "not_loaded",
            PolicyFailure::BreakerOpen => "breaker_open",
        }
    }

    /// Returns its id in records, which follows the policy's name.
    pub fn id(self) -> String {
        format!("{FAILURE_ID_PREFIX}{}", self.as_str().replace('_', "-"))
    }

    /// Whether the failure shows a problem of the policy; a burst of requests does not.
    pub(crate) fn affects_policy_health(self) -> bool {
        !matches!(self, PolicyFailure::QueueFull | PolicyFailure::BreakerOpen)
    }
}

impl Verdict {
    /// Checks that the verdict's texts are fit for a record and a client.
    pub fn validated(self) -> Result<Verdict, PolicyFailure> {
        let fits = match &self {
            Verdict::Allow => true,
            Verdict::Deny { code, reason } => is_id(code) && is_sentence(reason),
            Verdict::Flag { rule, score } => is_id(rule) && *score <= MAX_SCORE,
            Verdict::Replace { rule, .. } => is_id(rule),
            Verdict::Failed(failure) => return Err(*failure),
        };
        fits.then_some(self).ok_or(PolicyFailure::BadVerdict)
    }
}

fn is_id(text: &str) -> bool {
    text.len() <= MAX_ID_LEN && is_kebab_case(text) && !text.starts_with(FAILURE_ID_PREFIX)
}

fn is_sentence(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= MAX_REASON_CHARS && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::{PolicyFailure, Verdict};

    fn deny(code: &str, reason: &str) -> Verdict {
        Verdict::Deny {
            code: code.into(),
            reason: reason.into(),
        }
    }

    #[test]
    fn words_that_a_record_or_a_client_may_not_get_are_no_verdict() {
        let long = "x".repeat(33);
        for code in ["", "Upper", "a--b", "-a", "a b", "failed-deadline", &long] {
            assert_eq!(
                deny(code, "No.").validated(),
                Err(PolicyFailure::BadVerdict),
                "{code}"
            );
        }
        for reason in ["", "  ", "two\nlines", &"x".repeat(257)] {
            assert_eq!(
                deny("a", reason).validated(),
                Err(PolicyFailure::BadVerdict),
                "{reason}"
            );
        }
        let flag = |score| Verdict::Flag {
            rule: "a".into(),
            score,
        };
        assert_eq!(flag(100_001).validated(), Err(PolicyFailure::BadVerdict));
        for fits in [deny("not-2-day", "Not today."), flag(0), Verdict::Allow] {
            assert_eq!(fits.clone().validated(), Ok(fits));
        }
    }
}

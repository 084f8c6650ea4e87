//! What a policy may say of a request, and what may keep it from saying anything.

use proofgate_policy::is_kebab_case;

/// Longest id of a rule or a denial, in bytes: with the policy's name before it, what a record has room for.
const MAX_ID_LEN: usize = 32;
/// Longest reason that a client is shown, in characters.
const MAX_REASON_CHARS: usize = 256;
/// The greatest score that one verdict adds.
const MAX_SCORE: u32 = 100_000;
/// How the ids begin by which records tell failures.
const FAILURE_ID_PREFIX: &str = "failed-";

/// A policy's answer for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The policy has nothing to say.
    Allow,
    /// The request is denied.
    Deny {
        /// What the record calls it; kebab-case, at most 32 characters.
        code: String,
        /// One sentence for the client, at most 256 characters.
        reason: String,
    },
    /// The request goes on, and the record tells of it.
    Flag {
        /// What the record calls it; kebab-case, at most 32 characters.
        rule: String,
        /// What it adds to the request's score.
        score: u32,
    },
    /// The request goes on with parts of its text replaced.
    Replace {
        /// What the record calls it; kebab-case, at most 32 characters.
        rule: String,
        /// The parts, in order.
        replacements: Vec<Replacement>,
        /// Whether what was replaced is put back where the answer has what took its place.
        reversible: bool,
    },
    /// There is no verdict.
    Failed(PolicyFailure),
}

/// A part of a request's text, and what takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// Number of the text, in the order in which the request has them.
    pub text_index: usize,
    /// Where the part begins in it, in characters (code points).
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// What takes its place; without quotation marks, backslashes and control characters.
    pub replacement: String,
}

/// Why a policy gave no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyFailure {
    /// As many requests wait for it as may.
    QueueFull,
    /// It took longer than it may.
    Deadline,
    /// It raised an exception.
    Exception,
    /// It returned what is no verdict, or one that does not fit the request.
    BadVerdict,
    /// Nobody evaluates it any more.
    Dead,
    /// It could not be loaded.
    NotLoaded,
    /// It has failed so often that it is not asked for a while.
    BreakerOpen,
}

impl PolicyFailure {
    /// Every failure, in the order of their declaration.
    pub const ALL: [PolicyFailure; 7] = [
        PolicyFailure::QueueFull,
        PolicyFailure::Deadline,
        PolicyFailure::Exception,
        PolicyFailure::BadVerdict,
        PolicyFailure::Dead,
        PolicyFailure::NotLoaded,
        PolicyFailure::BreakerOpen,
    ];

    /// Its name in metrics.
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

    /// How records name it, behind the policy's name.
    pub fn id(self) -> String {
        format!("{FAILURE_ID_PREFIX}{}", self.as_str().replace('_', "-"))
    }

    /// Whether it says something of the policy's health: of a burst of requests it does not.
    pub(crate) fn affects_policy_health(self) -> bool {
        !matches!(self, PolicyFailure::QueueFull | PolicyFailure::BreakerOpen)
    }
}

impl Verdict {
    /// The verdict, if its words are such as a record and a client may get.
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

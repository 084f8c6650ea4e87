//! What a policy may say of a request, and what may keep it from saying anything.

use proofgate_policy::is_kebab_case;

/// Longest id of a rule or a denial, in bytes: with the policy's name before it, what a record has room for.
const LONGEST_ID: usize = 32;
/// Longest reason that a client is shown, in characters.
const LONGEST_REASON: usize = 256;
/// The greatest score that one verdict adds.
const GREATEST_SCORE: u32 = 100_000;
/// How the ids begin by which records tell failures.
const FAILED: &str = "failed-";

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
    Failed(Failure),
}

/// A part of a request's text, and what takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// Number of the text, in the order in which the request has them.
    pub text: usize,
    /// Where the part begins in it, in characters (code points).
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// What takes its place; without quotation marks, backslashes and control characters.
    pub by: String,
}

/// Why a policy gave no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
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

impl Failure {
    /// Every failure, in the order of their declaration.
    pub const ALL: [Failure; 7] = [
        Failure::QueueFull,
        Failure::Deadline,
        Failure::Exception,
        Failure::BadVerdict,
        Failure::Dead,
        Failure::NotLoaded,
        Failure::BreakerOpen,
    ];

    /// Its name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Failure::QueueFull => "queue_full",
            Failure::Deadline => "deadline",
            Failure::Exception => "exception",
            Failure::BadVerdict => "bad_verdict",
            Failure::Dead => "dead",
            Failure::NotLoaded => "not_loaded",
            Failure::BreakerOpen => "breaker_open",
        }
    }

    /// How records name it, behind the policy's name.
    pub fn id(self) -> String {
        format!("{FAILED}{}", self.as_str().replace('_', "-"))
    }

    /// Whether it says something of the policy's health: of a burst of requests it does not.
    pub(crate) fn is_the_policys(self) -> bool {
        !matches!(self, Failure::QueueFull | Failure::BreakerOpen)
    }
}

impl Verdict {
    /// The verdict, if its words are such as a record and a client may get.
    pub fn checked(self) -> Result<Verdict, Failure> {
        let fits = match &self {
            Verdict::Allow => true,
            Verdict::Deny { code, reason } => is_id(code) && is_sentence(reason),
            Verdict::Flag { rule, score } => is_id(rule) && *score <= GREATEST_SCORE,
            Verdict::Replace { rule, .. } => is_id(rule),
            Verdict::Failed(failure) => return Err(*failure),
        };
        fits.then_some(self).ok_or(Failure::BadVerdict)
    }
}

fn is_id(text: &str) -> bool {
    text.len() <= LONGEST_ID && is_kebab_case(text) && !text.starts_with(FAILED)
}

fn is_sentence(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= LONGEST_REASON && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::{Failure, Verdict};

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
            assert_eq!(deny(code, "No.").checked(), Err(Failure::BadVerdict), "{code}");
        }
        for reason in ["", "  ", "two\nlines", &"x".repeat(257)] {
            assert_eq!(deny("a", reason).checked(), Err(Failure::BadVerdict), "{reason}");
        }
        let flag = |score| Verdict::Flag {
            rule: "a".into(),
            score,
        };
        assert_eq!(flag(100_001).checked(), Err(Failure::BadVerdict));
        for fits in [deny("not-2-day", "Not today."), flag(0), Verdict::Allow] {
            assert_eq!(fits.clone().checked(), Ok(fits));
        }
    }
}

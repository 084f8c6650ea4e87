//! Why a log, a salt or a key is retained.

use crate::RetentionError;
use proofgate_evidence::Ulid;
use serde::Serialize;

/// A reason why a log, a salt or a key is retained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RetentionReason {
    /// Stable machine code.
    pub code: &'static str,
    /// The reason as a sentence.
    pub text: String,
    /// For `not_anchored`: the SHA-256 of the signed note that must be in the auditor's log, in 64 lower-case hexadecimal
    /// digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
}

pub(crate) fn reason(code: &'static str, text: impl Into<String>) -> RetentionReason {
    RetentionReason {
        code,
        text: text.into(),
        statement: None,
    }
}

/// Returns the reason for retaining a log with a damaged file.
pub(crate) fn damage_reason(error: RetentionError) -> Result<RetentionReason, RetentionError> {
    Ok(reason("damaged", format!("{}: run fsck", error.into_damage()?)))
}

pub(crate) fn ends_retained_reason(log: Ulid) -> RetentionReason {
    let text = format!("it contains the ends of exchanges that began in the log {log}, which is kept");
    reason("ends_kept", text)
}

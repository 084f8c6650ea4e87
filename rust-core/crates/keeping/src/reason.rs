//! Why a log stays, or a salt, or a key.

use crate::RetentionError;
use proofgate_evidence::Ulid;
use serde::Serialize;

/// Why a log stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RetentionReason {
    /// Its stable name.
    pub code: &'static str,
    /// In a sentence.
    pub text: String,
    /// Of `not_anchored`: the SHA-256 of the signed note that the auditor's log has to have, in 64 lower-case hexadecimal
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

/// Why a log stays of which a file is not what it should be.
pub(crate) fn damage_reason(error: RetentionError) -> Result<RetentionReason, RetentionError> {
    Ok(reason("damaged", format!("{}: run fsck", error.into_damage()?)))
}

pub(crate) fn ends_retained_reason(log: Ulid) -> RetentionReason {
    let text = format!("it contains the ends of exchanges that {log} admitted, and that log is kept");
    reason("ends_kept", text)
}

//! The encoding of answers, and of refusals for questions that cannot be answered.

use proofgate_ledger::LedgerError;
use serde_json::{Value, json};

/// Why a question cannot be answered: a stable code and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Stable machine code.
    pub code: &'static str,
    /// What is wrong, as a sentence for people.
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl From<LedgerError> for Refusal {
    fn from(error: LedgerError) -> Self {
        let code = match &error {
            LedgerError::IndexOutOfRange { .. } => "index_out_of_range",
            LedgerError::EmptyTree => "empty_tree",
            LedgerError::SizesReversed { .. } => "sizes_reversed",
            LedgerError::ProofLength => "proof_length",
            LedgerError::RootMismatch => "root_mismatch",
            LedgerError::KeyMalformed(_) => "key",
            LedgerError::OriginNotBelowKey { .. } => "other_origin",
            LedgerError::NoteMalformed(_) => "note",
            LedgerError::NoteUnsigned(_) => "unsigned",
            LedgerError::BadSignature(_) => "bad_signature",
            LedgerError::CheckpointMalformed(_) => "checkpoint",
            LedgerError::ProofMalformed(_) => "proof",
            LedgerError::NoSalt => "no_salt",
            LedgerError::NoCommitment => "no_commitment",
            LedgerError::CommitmentMismatch(_) => "other_body",
            LedgerError::RecordTooLarge { .. }
            | LedgerError::RecordMalformed(_)
            | LedgerError::InvalidRecordKind(_) => "record",
            _ => "refused",
        };
        Self::new(code, error.to_string())
    }
}

/// Encodes an answer as JSON text.
pub(crate) fn to_json_text(answer: Result<Value, Refusal>) -> String {
    let answer = answer.unwrap_or_else(
        |refusal| json!({"ok": false, "error": {"code": refusal.code, "message": refusal.message}}),
    );
    answer.to_string()
}

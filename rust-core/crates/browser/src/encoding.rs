//! The encoding of checkpoints and hashes in questions and answers.

use base64::{Engine, engine::general_purpose::STANDARD};
use proofgate_ledger::{Checkpoint, Hash};
use serde_json::{Value, json};

pub(crate) fn checkpoint_to_json(checkpoint: &Checkpoint) -> Value {
    json!({
        "origin": checkpoint.origin, "size": checkpoint.size.to_string(), "root": STANDARD.encode(checkpoint.root),
    })
}

pub(crate) fn parse_hash(text: &str) -> Option<Hash> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

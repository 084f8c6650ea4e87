//! Opens all stored bodies, for `fsck`.

use crate::{ExchangePayloads, PayloadError, PayloadField, StoredPayloads};
use proofgate_evidence::{EvidenceError, Finding, ReadStorage, ShredKeys, Verdict};
use proofgate_ledger::VerifyingKey;
use std::collections::BTreeMap;
use std::path::Path;

/// Opens all stored bodies under a path with the available keys, and reports bodies that do not
/// open or do not match the commitment in their record. Bodies whose keys are missing or whose
/// salts were erased are skipped. Problems that `fsck` itself finds are not reported: missing
/// bodies, and logs whose records contradict a signed checkpoint.
///
/// # Errors
/// [`EvidenceError::NotALog`] or [`EvidenceError::Io`].
pub fn check(
    storage: &dyn ReadStorage,
    path: &Path,
    key: &VerifyingKey,
    keys: ShredKeys,
) -> Result<Vec<Finding>, EvidenceError> {
    let mut wrong: BTreeMap<&'static str, (u64, Finding)> = BTreeMap::new();
    for exchange in StoredPayloads::new(storage, path, key, keys)?.flatten() {
        for field in PayloadField::ALL {
            if let Err(error @ (PayloadError::Refused | PayloadError::Mismatch)) = exchange.body(field) {
                let (count, _) = wrong
                    .entry(error.code())
                    .or_insert_with(|| (0, finding(&exchange, field, error)));
                *count += 1;
            }
        }
    }
    let told = wrong.into_values().map(|(count, first)| Finding {
        message: format!("{count} bodies are affected; the first: {}", first.message),
        ..first
    });
    Ok(told.collect())
}

fn finding(exchange: &ExchangePayloads, field: PayloadField, error: &PayloadError) -> Finding {
    Finding {
        file: exchange.dir.display().to_string(),
        offset: 0,
        verdict: Verdict::Invalid,
        code: Some(error.code()),
        message: format!("the {} of record {}: {error}", field.as_str(), exchange.seq),
    }
}

//! What is handed to somebody who wants an exchange proved: each of its records with a proof of its own.

use std::path::Path;

use proofgate_evidence::prove::{self, SaltIs};
use proofgate_evidence::{EvidenceError, FileStorage, FoundRecord, Search, ShredKeys};
use proofgate_ledger::{VerifyingKey, record};
use serde::Serialize;

/// One record and the proof that it is in the log.
#[derive(Debug, Clone, Serialize)]
pub struct Evidence {
    /// Kind of the record, such as `admission`.
    pub kind: String,
    /// Its leaf index.
    pub index: u64,
    /// The record's stored bytes, JSON.
    pub record: String,
    /// The proof, a C2SP `.tlog-proof` document.
    pub proof: String,
    /// The shred key that its salt needs, which was not at hand: the proof carries no salt. In hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shred_key_missing: Option<String>,
}

/// Finds all records of an exchange below `path`: a gateway's directory, a shard's or an incarnation's.
///
/// # Errors
/// As [`proofgate_evidence::find`].
pub fn find(path: &Path, request_id: &str, search: Search) -> Result<Vec<FoundRecord>, EvidenceError> {
    proofgate_evidence::find(&FileStorage, path, request_id, search)
}

/// Proves each record that a checkpoint covers. Of a salt that needs a key which is not at hand, that is told.
///
/// # Errors
/// [`EvidenceError::NotCovered`] while no checkpoint covers any of them; otherwise as [`prove::proof`].
pub fn prove(
    found: Vec<FoundRecord>,
    key: Option<&VerifyingKey>,
    shred_keys: Option<&ShredKeys>,
) -> Result<Vec<Evidence>, EvidenceError> {
    let mut proven = Vec::with_capacity(found.len());
    let mut uncovered = None;
    for FoundRecord { dir, seq, record } in found {
        let (proof, salt) = match prove::proof_with(&FileStorage, &dir, seq, &record, key, shred_keys) {
            Ok(proven) => proven,
            Err(error @ EvidenceError::NotCovered { .. }) => {
                uncovered.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        let kind =
            record::parse(&record).map_or_else(|_| "unknown".to_owned(), |record| record.kind().to_owned());
        proven.push(Evidence {
            kind,
            index: seq,
            record: String::from_utf8_lossy(&record).into_owned(),
            proof: proof.encode(),
            shred_key_missing: match salt {
                SaltIs::Locked(id) => Some(id.to_string()),
                _ => None,
            },
        });
    }
    match uncovered {
        Some(error) if proven.is_empty() => Err(error),
        _ => Ok(proven),
    }
}

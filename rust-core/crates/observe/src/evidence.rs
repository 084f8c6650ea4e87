//! The evidence of an exchange: its records, each with its proof.

use std::path::Path;

use proofgate_evidence::prove::{self, SaltAvailability};
use proofgate_evidence::{EvidenceError, FileStorage, FoundRecord, SearchMode, ShredKeys};
use proofgate_ledger::{TlogProof, VerifyingKey, record};
use serde::Serialize;

/// A record and the proof that it is in the log.
#[derive(Debug, Clone, Serialize)]
pub struct Evidence {
    /// Kind of the record, such as `admission`.
    pub kind: String,
    /// Leaf index of the record.
    pub index: u64,
    /// The record's stored bytes, JSON.
    pub record: String,
    /// The proof, a C2SP `.tlog-proof` document.
    pub proof: String,
    /// Id of the shred key that the salt needs, in hex, if the key was not available. The proof
    /// then contains no salt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shred_key_missing: Option<String>,
    /// The reason why the salt cannot be read, if so. The proof then contains no salt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub salt_unreadable: Option<String>,
}

impl Evidence {
    fn from_record(
        found: &FoundRecord,
        proof: &TlogProof,
        salt: Result<SaltAvailability, EvidenceError>,
    ) -> Self {
        let kind = record::parse(&found.record);
        Self {
            kind: kind.map_or_else(|_| "unknown".to_owned(), |record| record.kind().to_owned()),
            index: found.seq,
            record: String::from_utf8_lossy(&found.record).into_owned(),
            proof: proof.encode(),
            shred_key_missing: match salt {
                Ok(SaltAvailability::KeyMissing(id)) => Some(id.to_string()),
                _ => None,
            },
            salt_unreadable: salt.err().map(|error| format!("{error} [{}]", error.code())),
        }
    }
}

/// The provable and unprovable records of an exchange.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ProvenExchange {
    /// The records that can be proved.
    pub records: Vec<Evidence>,
    /// The reasons why other records cannot be proved: a part of their logs cannot be read or is
    /// not trusted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unproven: Vec<String>,
}

/// Finds all records of an exchange below `path`, which is the directory of a gateway, a shard or
/// an incarnation.
///
/// # Errors
/// Same as [`proofgate_evidence::find_records`].
pub fn find_records(
    path: &Path,
    request_id: &str,
    search: SearchMode,
) -> Result<Vec<FoundRecord>, EvidenceError> {
    proofgate_evidence::find_records(&FileStorage, path, request_id, search)
}

/// Proves each record that a checkpoint covers. The evidence of a record names a salt's key that is
/// not available.
///
/// # Errors
/// [`EvidenceError::NotCovered`] while no checkpoint covers any of the records; otherwise the
/// errors of [`prove::record_proof`].
pub fn prove(
    found: Vec<FoundRecord>,
    key: Option<&VerifyingKey>,
    shred_keys: Option<&ShredKeys>,
) -> Result<Vec<Evidence>, EvidenceError> {
    let mut proven = Vec::with_capacity(found.len());
    let mut uncovered = None;
    for found in found {
        match prove::proof_with_keys(
            &FileStorage,
            &found.dir,
            found.seq,
            &found.record,
            key,
            shred_keys,
        ) {
            Ok((proof, salt)) => proven.push(Evidence::from_record(&found, &proof, Ok(salt?))),
            Err(error @ EvidenceError::NotCovered { .. }) => {
                uncovered.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    match uncovered {
        Some(error) if proven.is_empty() => Err(error),
        _ => Ok(proven),
    }
}

/// Proves the readable records, like [`prove`]. The result also names salts that cannot be read and
/// records of damaged logs.
///
/// # Errors
/// The error of the first record if none can be proved, or a storage failure.
pub fn prove_readable(
    found: Vec<FoundRecord>,
    key: Option<&VerifyingKey>,
    shred_keys: Option<&ShredKeys>,
) -> Result<ProvenExchange, EvidenceError> {
    let mut proven = ProvenExchange::default();
    let mut first = None;
    for found in found {
        match prove::proof_with_keys(
            &FileStorage,
            &found.dir,
            found.seq,
            &found.record,
            key,
            shred_keys,
        ) {
            Ok((proof, salt)) => proven.records.push(Evidence::from_record(&found, &proof, salt)),
            Err(error) => {
                if error.is_damaged() {
                    let text = format!("record {} of {}: {error}", found.seq, found.dir.display());
                    proven.unproven.push(format!("{text} [{}]", error.code()));
                } else if !matches!(error, EvidenceError::NotCovered { .. }) {
                    return Err(error);
                }
                first.get_or_insert(error);
            }
        }
    }
    match first {
        Some(error) if proven.records.is_empty() => Err(error),
        _ => Ok(proven),
    }
}

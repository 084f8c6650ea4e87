//! What is handed to somebody who wants an exchange proved: each of its records with a proof of its own.

use std::path::Path;

use proofgate_ledger::{VerifyingKey, record};
use proofgate_wal::prove::{self, FoundRecord};
use proofgate_wal::{FileStorage, WalError};
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
}

/// Finds all records of an exchange below `path`: a gateway's directory, a shard's or an incarnation's.
///
/// # Errors
/// As [`prove::find`].
pub fn find(path: &Path, request_id: &str) -> Result<Vec<FoundRecord>, WalError> {
    prove::find(&FileStorage, path, request_id)
}

/// Proves each record.
///
/// # Errors
/// [`WalError::NotCovered`] while no checkpoint covers one of them; otherwise as [`prove::proof`].
pub fn prove(found: Vec<FoundRecord>, key: Option<&VerifyingKey>) -> Result<Vec<Evidence>, WalError> {
    let evidence = found.into_iter().map(|FoundRecord { dir, seq, record }| {
        let kind = record::parse(&record)
            .map(|record| record.kind())
            .unwrap_or("unknown")
            .to_owned();
        let proof = prove::proof(&FileStorage, &dir, seq, key)?.encode();
        Ok(Evidence {
            kind,
            index: seq,
            record: String::from_utf8_lossy(&record).into_owned(),
            proof,
        })
    });
    evidence.collect()
}

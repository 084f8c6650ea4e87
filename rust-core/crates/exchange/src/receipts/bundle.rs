//! The assembly of a receipt from the files of the ledger.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::slice;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofgate_evidence::key_successions::{self, StoredSuccessions};
use proofgate_evidence::prove::successor_checkpoint;
use proofgate_evidence::{
    EvidenceError, FileStorage, FoundRecord, find_exchange_start, prove_consistency,
    prove_consistency_from_size,
};
use proofgate_ledger::record::{self, Record};
use proofgate_ledger::{Checkpoint, Hash, TlogProof, VerifyingKey};
use proofgate_observe::evidence::{self, Evidence};
use serde::Serialize;

use super::receipt_service::{ClientCheckpoint, ReceiptLookup, ReceiptQuery};

/// The response to `GET /v1/receipts/{id}`.
#[derive(Serialize)]
struct Receipt<'r> {
    object: &'static str,
    id: &'r str,
    /// Whether the records include the final record of the exchange.
    complete: bool,
    /// Origins of the logs that contain the records.
    origins: Vec<&'r str>,
    /// The ledger's verifying key, as a hint only. It proves nothing, because a forger could insert
    /// a different key.
    vkey_hint: String,
    /// The statements of succession between the ledger's keys; empty if the ledger has had only one
    /// key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    key_successions: Vec<String>,
    records: &'r [Evidence],
    /// Proofs that the checkpoints of the records' proofs and the client's checkpoint are
    /// consistent.
    consistency: Vec<ConsistencyProof>,
}

/// A proof that the log with `old` records is a prefix of the same log with `new` records (RFC 9162
/// section 2.1.4).
#[derive(Serialize)]
struct ConsistencyProof {
    origin: String,
    old: u64,
    new: u64,
    /// The hashes of the proof, in Base64.
    hashes: Vec<String>,
}

/// Searches all shards under `directory` for an exchange of a tenant, and proves each of its records.
pub(super) fn look_up(directory: &Path, key: &VerifyingKey, question: &ReceiptQuery) -> ReceiptLookup {
    match build_receipt(directory, key, question) {
        Ok(found) => found,
        Err(EvidenceError::NotCovered { .. }) => ReceiptLookup::NotCovered,
        Err(_) => ReceiptLookup::Unreadable,
    }
}

fn build_receipt(
    directory: &Path,
    key: &VerifyingKey,
    question: &ReceiptQuery,
) -> Result<ReceiptLookup, EvidenceError> {
    let Some(beginning) = find_exchange_start(&FileStorage, directory, &question.id)? else {
        return Ok(ReceiptLookup::NotFound);
    };
    if !belong_to(slice::from_ref(beginning.record()), &question.tenant) {
        // Searches for an unknown id, so that the response takes as long as for one. The search for
        // another tenant's exchange ends early.
        find_exchange_start(&FileStorage, directory, &different_id(&question.id))?;
        return Ok(ReceiptLookup::NotFound);
    }
    // For an open exchange, only the admission is used: a search for its end would read all later
    // records.
    let found = match question.is_open {
        true => vec![beginning.into_record()],
        false => beginning.into_records()?,
    };
    if !belong_to(&found, &question.tenant) {
        return Ok(ReceiptLookup::NotFound);
    }
    let dirs: Vec<PathBuf> = found.iter().map(|record| record.dir.clone()).collect();
    let complete = found.iter().any(is_final_record);
    // Workers of other shards may have changed to another key since this one started.
    let kept = key_successions::read(&FileStorage, directory)?;
    let vkey_hint = key.to_text();
    let key = &key.with_successions(&kept.statements())?;
    let proven = evidence::prove(found, Some(key), question.shred_keys.as_deref())?;
    if proven.len() < dirs.len() {
        return Ok(ReceiptLookup::NotCovered);
    }
    let mut checkpoints: BTreeMap<String, Checkpoints> = BTreeMap::new();
    for (dir, proven) in dirs.into_iter().zip(&proven) {
        let proof = TlogProof::parse(&proven.proof)?;
        let signed = Checkpoint::parse_unverified(&proof.checkpoint)?;
        let of_log = checkpoints.entry(signed.origin.clone()).or_default();
        of_log.dir = dir;
        of_log.by_size.insert(signed.size, signed);
    }
    let mut proofs = Vec::new();
    for of_log in checkpoints.values() {
        of_log.prove(question.client_checkpoint.as_ref(), key, &mut proofs)?;
    }
    let receipt = Receipt {
        object: "receipt",
        id: &question.id,
        complete,
        origins: checkpoints.keys().map(String::as_str).collect(),
        vkey_hint,
        key_successions: key_line_notes(kept, key),
        records: &proven,
        consistency: proofs,
    };
    // Strings and numbers always serialize.
    Ok(ReceiptLookup::Receipt(
        serde_json::to_vec(&receipt).unwrap_or_default(),
    ))
}

/// Returns the signed statements of succession between keys that `key` contains.
fn key_line_notes(kept: StoredSuccessions, key: &VerifyingKey) -> Vec<String> {
    let signed = kept.signed.into_iter();
    signed
        .filter(|(statement, _)| {
            key.position_of(&statement.old_key).is_some() && key.position_of(&statement.new_key).is_some()
        })
        .map(|(_, note)| note)
        .collect()
}

/// Whether the records belong to an exchange or a rejection of `tenant`.
fn belong_to(found: &[FoundRecord], tenant: &str) -> bool {
    let mut tenants = found
        .iter()
        .filter_map(|found| match record::parse(&found.record) {
            Ok(Record::Admission(admission)) => Some(*admission.tenant == *tenant),
            Ok(Record::Rejection(rejection)) => Some(rejection.tenant.as_deref() == Some(tenant)),
            _ => None,
        });
    tenants.next() == Some(true) && tenants.all(|own| own)
}

fn is_final_record(found: &FoundRecord) -> bool {
    matches!(
        record::parse(&found.record),
        Ok(Record::Completion(_) | Record::Abort(_) | Record::Rejection(_))
    )
}

/// Returns a different id with the same timestamp.
fn different_id(id: &str) -> String {
    let mut another = id.to_owned();
    let last = if another.pop() == Some('0') { '1' } else { '0' };
    another.push(last);
    another
}

/// The checkpoints of one log that the proofs contain.
#[derive(Default)]
struct Checkpoints {
    dir: PathBuf,
    /// The checkpoints by log size. There are two if the worker signed one between two proofs, or
    /// if its successor signed the rest of the log.
    by_size: BTreeMap<u64, Checkpoint>,
}

impl Checkpoints {
    /// Proves that each checkpoint is a prefix of the next one, and that the client's checkpoint is
    /// a prefix of the largest.
    fn prove(
        &self,
        held: Option<&ClientCheckpoint>,
        key: &VerifyingKey,
        out: &mut Vec<ConsistencyProof>,
    ) -> Result<(), EvidenceError> {
        for (old, new) in self.by_size.values().zip(self.by_size.values().skip(1)) {
            let hashes = prove_consistency(&FileStorage, &self.dir, old, new)?;
            out.push(ConsistencyProof::new(old.size, new, &hashes));
        }
        let Some(largest) = self.by_size.values().next_back() else {
            return Ok(());
        };
        let Some(held) = held.filter(|held| held.origin == largest.origin) else {
            return Ok(());
        };
        if held.size < largest.size && !self.by_size.contains_key(&held.size) {
            let hashes = prove_consistency_from_size(&FileStorage, &self.dir, held.size, largest)?;
            out.push(ConsistencyProof::new(held.size, largest, &hashes));
        }
        if held.size > largest.size
            && let Some(cover) = successor_checkpoint(&FileStorage, &self.dir, key)?
            && cover.size == held.size
        {
            // The client's checkpoint is from a killed worker's successor, and an earlier
            // checkpoint covers the records.
            let hashes = prove_consistency(&FileStorage, &self.dir, largest, &cover)?;
            out.push(ConsistencyProof::new(largest.size, &cover, &hashes));
        }
        Ok(())
    }
}

impl ConsistencyProof {
    fn new(old: u64, new: &Checkpoint, hashes: &[Hash]) -> Self {
        ConsistencyProof {
            origin: new.origin.clone(),
            old,
            new: new.size,
            hashes: hashes.iter().map(|hash| STANDARD.encode(hash)).collect(),
        }
    }
}

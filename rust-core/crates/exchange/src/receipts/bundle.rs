//! A receipt, put together from the files of the ledger.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::slice;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofgate_evidence::key_successions::{self, KeptSuccessions};
use proofgate_evidence::prove::successors_checkpoint;
use proofgate_evidence::{
    EvidenceError, FileStorage, FoundRecord, consistency, consistency_from, find_beginning,
};
use proofgate_ledger::record::{self, Record};
use proofgate_ledger::{Checkpoint, Hash, TlogProof, VerifyingKey};
use proofgate_observe::evidence::{self, Evidence};
use serde::Serialize;

use super::desk::{Found, Held, Question};

/// What a tenant is handed, as `GET /v1/receipts/{id}` answers.
#[derive(Serialize)]
struct Receipt<'r> {
    object: &'static str,
    id: &'r str,
    /// Whether the end of the exchange is among the records.
    complete: bool,
    /// The logs in which they stand.
    origins: Vec<&'r str>,
    /// The ledger's verifying key. It proves nothing here: who forges a receipt puts another one in.
    vkey_hint: String,
    /// The statements by which the ledger's keys follow each other, if there has been more than one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    key_successions: Vec<String>,
    records: &'r [Evidence],
    /// That the checkpoints in the proofs, and the one that the client holds, are one history.
    consistency: Vec<Consistency>,
}

/// That a log of `old` records is the beginning of the same log of `new` (RFC 9162 section 2.1.4).
#[derive(Serialize)]
struct Consistency {
    origin: String,
    old: u64,
    new: u64,
    /// Base64.
    hashes: Vec<String>,
}

/// Looks for an exchange of a tenant in all shards under `directory`, and proves each of its records.
pub(super) fn look_up(directory: &Path, key: &VerifyingKey, question: &Question) -> Found {
    match receipt(directory, key, question) {
        Ok(found) => found,
        Err(EvidenceError::NotCovered { .. }) => Found::NotCovered,
        Err(_) => Found::Unreadable,
    }
}

fn receipt(directory: &Path, key: &VerifyingKey, question: &Question) -> Result<Found, EvidenceError> {
    let Some(beginning) = find_beginning(&FileStorage, directory, &question.id)? else {
        return Ok(Found::Nothing);
    };
    if !are_of(slice::from_ref(beginning.record()), &question.tenant) {
        // As long as for an id that nobody has: the search for another tenant's ends early.
        find_beginning(&FileStorage, directory, &another(&question.id))?;
        return Ok(Found::Nothing);
    }
    // The end of one that goes on would be looked for in all that came since.
    let found = match question.open {
        true => vec![beginning.into_record()],
        false => beginning.to_end()?,
    };
    if !are_of(&found, &question.tenant) {
        return Ok(Found::Nothing);
    }
    let dirs: Vec<PathBuf> = found.iter().map(|record| record.dir.clone()).collect();
    let complete = found.iter().any(is_end);
    // Workers of other shards may have gone over to another key since this one started.
    let kept = key_successions::read(&FileStorage, directory)?;
    let vkey_hint = key.to_text();
    let key = &key.with_successions(&kept.statements())?;
    let proven = evidence::prove(found, Some(key), question.shred_keys.as_deref())?;
    if proven.len() < dirs.len() {
        return Ok(Found::NotCovered);
    }
    let mut checkpoints: BTreeMap<String, Checkpoints> = BTreeMap::new();
    for (dir, proven) in dirs.into_iter().zip(&proven) {
        let proof = TlogProof::parse(&proven.proof)?;
        let signed = Checkpoint::parse_unverified(&proof.checkpoint)?;
        let of_log = checkpoints.entry(signed.origin.clone()).or_default();
        of_log.dir = dir;
        of_log.signed.insert(signed.size, signed);
    }
    let mut proofs = Vec::new();
    for of_log in checkpoints.values() {
        of_log.prove(question.held.as_ref(), key, &mut proofs)?;
    }
    let receipt = Receipt {
        object: "receipt",
        id: &question.id,
        complete,
        origins: checkpoints.keys().map(String::as_str).collect(),
        vkey_hint,
        key_successions: of_line(kept, key),
        records: &proven,
        consistency: proofs,
    };
    // Strings and numbers always serialise.
    Ok(Found::Receipt(serde_json::to_vec(&receipt).unwrap_or_default()))
}

/// The notes about keys of a line.
fn of_line(kept: KeptSuccessions, key: &VerifyingKey) -> Vec<String> {
    let signed = kept.signed.into_iter();
    signed
        .filter(|(statement, _)| {
            key.place_of(&statement.old).is_some() && key.place_of(&statement.new).is_some()
        })
        .map(|(_, note)| note)
        .collect()
}

/// Whether the records are of an exchange, or a refusal, of this tenant.
fn are_of(found: &[FoundRecord], tenant: &str) -> bool {
    let mut tenants = found
        .iter()
        .filter_map(|found| match record::parse(&found.record) {
            Ok(Record::Admission(admission)) => Some(*admission.tenant == *tenant),
            Ok(Record::Rejection(rejection)) => Some(rejection.tenant.as_deref() == Some(tenant)),
            _ => None,
        });
    tenants.next() == Some(true) && tenants.all(|own| own)
}

fn is_end(found: &FoundRecord) -> bool {
    matches!(
        record::parse(&found.record),
        Ok(Record::Completion(_) | Record::Aborted(_) | Record::Rejection(_))
    )
}

/// An id of the same time that is another one.
fn another(id: &str) -> String {
    let mut another = id.to_owned();
    let last = if another.pop() == Some('0') { '1' } else { '0' };
    another.push(last);
    another
}

/// The checkpoints of one log that lie in the proofs.
#[derive(Default)]
struct Checkpoints {
    dir: PathBuf,
    /// By size. There are two where the worker signed between two proofs, or its successor signed what it left.
    signed: BTreeMap<u64, Checkpoint>,
}

impl Checkpoints {
    /// Proves that each is the beginning of the next, and the one that is held of the largest.
    fn prove(
        &self,
        held: Option<&Held>,
        key: &VerifyingKey,
        out: &mut Vec<Consistency>,
    ) -> Result<(), EvidenceError> {
        for (old, new) in self.signed.values().zip(self.signed.values().skip(1)) {
            let hashes = consistency(&FileStorage, &self.dir, old, new)?;
            out.push(Consistency::new(old.size, new, &hashes));
        }
        let Some(largest) = self.signed.values().next_back() else {
            return Ok(());
        };
        let Some(held) = held.filter(|held| held.origin == largest.origin) else {
            return Ok(());
        };
        if held.size < largest.size && !self.signed.contains_key(&held.size) {
            let hashes = consistency_from(&FileStorage, &self.dir, held.size, largest)?;
            out.push(Consistency::new(held.size, largest, &hashes));
        }
        if held.size > largest.size
            && let Some(cover) = successors_checkpoint(&FileStorage, &self.dir, key)?
            && cover.size == held.size
        {
            // What is held is what the successor of a killed worker signed, and the records were covered before.
            let hashes = consistency(&FileStorage, &self.dir, largest, &cover)?;
            out.push(Consistency::new(largest.size, &cover, &hashes));
        }
        Ok(())
    }
}

impl Consistency {
    fn new(old: u64, new: &Checkpoint, hashes: &[Hash]) -> Self {
        Consistency {
            origin: new.origin.clone(),
            old,
            new: new.size,
            hashes: hashes.iter().map(|hash| STANDARD.encode(hash)).collect(),
        }
    }
}

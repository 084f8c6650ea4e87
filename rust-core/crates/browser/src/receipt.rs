//! A receipt, as `GET /v1/receipts/{id}` returns it, and every step of checking it.

use crate::Refusal;
use crate::encoding::{checkpoint_to_json, parse_hash};
use crate::step::Steps;
use proofgate_ledger::commitment::reveal;
use proofgate_ledger::{
    Checkpoint, Hash, KeySuccession, LedgerError, MAX_KEYS, TlogProof, VerifyingKey, leaf_hash, record,
    verify_consistency, verify_inclusion,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Largest receipt that is read, in bytes.
const MAX_RECEIPT: usize = 16 << 20;
/// Maximum number of records, and of consistency proofs. An exchange has an admission, a few
/// attempts and an end.
const MAX_RECORDS: usize = 256;
/// The kinds of records that commit to a request, with the field of the commitment. If the body was
/// still arriving at admission, only the completion commits to the whole body.
const REQUEST_COMMITMENTS: [(&str, &str); 3] = [
    ("completion", "received"),
    ("admission", "request"),
    ("rejection", "request"),
];
const RESPONSE_COMMITMENTS: [(&str, &str); 1] = [("completion", "response")];

/// A receipt that was parsed but not verified. Unknown fields are ignored.
#[derive(Deserialize)]
pub(crate) struct Receipt {
    pub(crate) id: String,
    /// Whether it claims to contain the end of the exchange.
    pub(crate) complete: bool,
    /// Statements of succession of the ledger's keys.
    #[serde(default)]
    key_successions: Vec<String>,
    records: Vec<Entry>,
    consistency: Vec<ConsistencyProof>,
}

#[derive(Deserialize)]
struct Entry {
    record: String,
    proof: String,
}

#[derive(Deserialize)]
struct ConsistencyProof {
    origin: String,
    old: u64,
    new: u64,
    hashes: Vec<String>,
}

/// The fields of a record that are checked.
#[derive(Deserialize)]
struct RecordFacts {
    kind: String,
    seq: u64,
    id: Option<String>,
    admission: Option<u64>,
    incarnation: Option<String>,
    /// Number of attempts that a completion states; absent if there was one.
    attempts: Option<u64>,
}

/// A record that is proved to be in a signed log.
struct ProvedRecord<'a> {
    entry: &'a Entry,
    proof: TlogProof,
    facts: RecordFacts,
    checkpoint: Checkpoint,
}

impl Receipt {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let refused = |reason: String| Refusal::new("receipt", format!("this is not a receipt: {reason}"));
        if bytes.len() > MAX_RECEIPT {
            return Err(refused("it is larger than 16 MiB".to_owned()));
        }
        let receipt: Self = serde_json::from_slice(bytes).map_err(|error| refused(error.to_string()))?;
        match (receipt.records.len(), receipt.consistency.len()) {
            (0, _) => Err(refused("it contains no record".to_owned())),
            (records, links) if records > MAX_RECORDS || links > MAX_RECORDS => Err(refused(format!(
                "it contains more than {MAX_RECORDS} records or proofs"
            ))),
            _ => Ok(receipt),
        }
    }

    /// Extends a trusted key by its lineage from the statements in the receipt.
    ///
    /// # Errors
    /// When a statement is invalid, or statements contradict each other.
    pub(crate) fn extend_key_lineage(&self, key: &VerifyingKey) -> Result<VerifyingKey, LedgerError> {
        let notes = self.key_successions.iter().take(MAX_KEYS);
        let statements: Result<Vec<_>, _> = notes.map(|note| KeySuccession::verify(note)).collect();
        key.with_successions(&statements?)
    }

    /// Performs every step, even after a failed one. Returns the proved records.
    pub(crate) fn verify(
        &self,
        key: &VerifyingKey,
        request: Option<&[u8]>,
        response: Option<&[u8]>,
        steps: &mut Steps,
    ) -> Vec<Value> {
        let entries = self.records.iter().enumerate();
        let proved: Vec<ProvedRecord<'_>> = entries
            .filter_map(|(number, entry)| self.prove(number + 1, entry, key, steps))
            .collect();
        if proved.len() == self.records.len() {
            steps.record(
                "exchange",
                "the records belong to one exchange",
                check_single_exchange(&proved),
            );
            self.check_histories(&proved, steps);
        } else {
            steps.record_skipped(
                "exchange",
                "whether the records belong to one exchange: not all records are proved",
            );
        }
        check_body(&proved, "request", &REQUEST_COMMITMENTS, request, steps);
        check_body(&proved, "response", &RESPONSE_COMMITMENTS, response, steps);
        if let Some(missing) = missing_attempts(&proved) {
            steps.record_skipped("attempts", missing);
        }
        if !self.complete {
            steps.record_skipped("end", "the end of the exchange: the receipt does not contain it");
        } else if !proved.iter().any(|record| is_final_record(&record.facts.kind)) {
            let missing = Refusal::new("no_end", "no record that ends the exchange is proved");
            steps.record::<()>(
                "end",
                "the receipt contains the end of the exchange",
                Err(missing),
            );
        }
        let told = proved.iter().map(|record| {
            json!({
                "kind": record.facts.kind, "index": record.proof.index.to_string(), "record": record.entry.record,
                "checkpoint": checkpoint_to_json(&record.checkpoint),
            })
        });
        told.collect()
    }

    fn prove<'a>(
        &self,
        number: usize,
        entry: &'a Entry,
        key: &VerifyingKey,
        steps: &mut Steps,
    ) -> Option<ProvedRecord<'a>> {
        let proof = match TlogProof::parse(&entry.proof) {
            Ok(proof) => proof,
            Err(error) => {
                let text = format!("the proof of record {number} of the receipt can be read");
                return steps.record("proof", text, Err(error));
            }
        };
        let checkpoint = steps.record(
            "signature",
            format!("the checkpoint of record {number} is signed by {}", key.name()),
            Checkpoint::verify(&proof.checkpoint, key),
        )?;
        steps.record(
            "inclusion",
            format!(
                "record {number} is at index {} of {} in {}",
                proof.index, checkpoint.size, checkpoint.origin
            ),
            verify_inclusion(
                &leaf_hash(entry.record.as_bytes()),
                proof.index,
                checkpoint.size,
                &proof.hashes,
                &checkpoint.root,
            ),
        )?;
        let facts = steps.record(
            "record",
            format!("record {number} states the same index and belongs to this exchange"),
            self.read_facts(&entry.record, proof.index),
        )?;
        Some(ProvedRecord {
            entry,
            proof,
            facts,
            checkpoint,
        })
    }

    fn read_facts(&self, text: &str, index: u64) -> Result<RecordFacts, Refusal> {
        // The record has every field of its kind, and no field twice.
        record::parse(text.as_bytes())?;
        let facts: RecordFacts =
            serde_json::from_str(text).map_err(|error| Refusal::new("record", error.to_string()))?;
        if facts.seq != index {
            let message = format!("it says that it is at index {}", facts.seq);
            return Err(Refusal::new("other_place", message));
        }
        if facts.id.as_deref() != Some(&self.id) {
            let message = format!("it does not belong to exchange {}", self.id);
            return Err(Refusal::new("other_exchange", message));
        }
        Ok(facts)
    }

    /// Checks that the checkpoints of one log are consistent.
    fn check_histories(&self, proved: &[ProvedRecord<'_>], steps: &mut Steps) {
        let mut signed: Vec<&Checkpoint> = proved.iter().map(|record| &record.checkpoint).collect();
        signed.sort_by(|one, other| (&one.origin, one.size).cmp(&(&other.origin, other.size)));
        for pair in signed.windows(2) {
            let [older, newer] = pair else { continue };
            if older.origin != newer.origin || older == newer {
                continue;
            }
            steps.record(
                "history",
                format!(
                    "the checkpoints of {} with {} and {} records are consistent",
                    older.origin, older.size, newer.size
                ),
                self.check_consistency(older, newer),
            );
        }
    }

    fn check_consistency(&self, older: &Checkpoint, newer: &Checkpoint) -> Result<(), Refusal> {
        let place = (older.origin.as_str(), older.size, newer.size);
        let found = self
            .consistency
            .iter()
            .find(|link| (link.origin.as_str(), link.old, link.new) == place);
        let hashes: Option<Vec<Hash>> = match found {
            Some(link) => link.hashes.iter().map(|text| parse_hash(text)).collect(),
            None => Some(Vec::new()),
        };
        let hashes = hashes.ok_or_else(|| Refusal::new("hashes", "a hash is not 32 bytes of base64"))?;
        Ok(verify_consistency(
            older.size,
            &older.root,
            newer.size,
            &newer.root,
            &hashes,
        )?)
    }
}

fn is_final_record(kind: &str) -> bool {
    matches!(kind, "completion" | "aborted" | "rejection")
}

/// Returns a message if fewer attempts are proved than the end states.
fn missing_attempts(proved: &[ProvedRecord<'_>]) -> Option<String> {
    let end = proved.iter().find(|record| record.facts.kind == "completion")?;
    let counted = end.facts.attempts.unwrap_or(1);
    let further = proved
        .iter()
        .filter(|record| record.facts.kind == "attempt")
        .count();
    let missing = counted
        .saturating_sub(1)
        .checked_sub(further as u64)
        .filter(|missing| *missing > 0)?;
    Some(format!(
        "the receipt does not contain the records of {missing} of {counted} attempts"
    ))
}

fn check_single_exchange(proved: &[ProvedRecord<'_>]) -> Result<(), Refusal> {
    let other = |message: String| Refusal::new("other_exchange", message);
    let begins = |record: &&ProvedRecord<'_>| matches!(record.facts.kind.as_str(), "admission" | "rejection");
    if proved.iter().filter(begins).count() != 1 {
        return Err(other(
            "the receipt must contain exactly one record of an admission or a refusal".to_owned(),
        ));
    }
    let place = |record: &ProvedRecord<'_>| (record.checkpoint.origin.clone(), record.proof.index);
    let places: BTreeSet<_> = proved.iter().map(place).collect();
    if places.len() != proved.len() {
        return Err(Refusal::new("record_twice", "a record occurs twice"));
    }
    let admission = proved.iter().find(|record| record.facts.kind == "admission");
    for record in proved {
        let Some(number) = record.facts.admission else {
            continue;
        };
        let origin = &record.checkpoint.origin;
        let origin = match (&record.facts.incarnation, origin.rsplit_once('/')) {
            (Some(incarnation), Some((shard, _))) => format!("{shard}/{incarnation}"),
            _ => origin.clone(),
        };
        let names = |admission: &ProvedRecord<'_>| {
            admission.checkpoint.origin == origin && admission.proof.index == number
        };
        if !admission.is_some_and(names) {
            return Err(other(format!(
                "the {} record belongs to another admission",
                record.facts.kind
            )));
        }
    }
    Ok(())
}

/// Checks that a body is the recorded one. `places` lists the kinds of records that may commit to
/// it, with the field of the commitment.
fn check_body(
    proved: &[ProvedRecord<'_>],
    name: &'static str,
    places: &[(&str, &str)],
    body: Option<&[u8]>,
    steps: &mut Steps,
) {
    let Some(body) = body else {
        return steps.record_skipped(name, format!("the {name} was not checked: no file was given"));
    };
    let mut shown = Err(Refusal::new(
        "no_record",
        "no record that commits to this body is proved",
    ));
    for (kind, field) in places {
        let Some(proved) = proved.iter().find(|record| record.facts.kind == *kind) else {
            continue;
        };
        shown = check_commitment(proved, body, field);
        if shown.is_ok() {
            break;
        }
    }
    steps.record(
        name,
        format!("the file matches the recorded {name} byte for byte"),
        shown,
    );
}

fn check_commitment(proved: &ProvedRecord<'_>, body: &[u8], field: &str) -> Result<(), Refusal> {
    let salt = proved.proof.salt().ok_or(LedgerError::NoSalt)?;
    let record = record::parse(proved.entry.record.as_bytes())?;
    let found = reveal(&record, &salt, body)?;
    match found == field {
        true => Ok(()),
        false => Err(Refusal::new(
            "other_body",
            format!("the file matches another body of the record, the {found}"),
        )),
    }
}

//! The questions, each with its arguments in order. Texts are UTF-8. Keys are vkeys, which may be followed by statements
//! of succession. Sizes and numbers in answers are decimal texts, because a browser's numbers are exact only up to 2^53.

use crate::Refusal;
use crate::encoding::{checkpoint_to_json, parse_hash};
use crate::receipt::Receipt;
use crate::step::Steps;
use base64::{Engine, engine::general_purpose::STANDARD};
use proofgate_ledger::{
    Checkpoint, Hash, Mmr, TlogProof, VerifyingKey, leaf_hash, node_hash, verify_consistency,
    verify_inclusion,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The arguments that the caller passed; `None` for an absent argument.
pub type Arguments = [Option<Vec<u8>>];
/// A function that answers a question from its arguments.
pub type QueryHandler = fn(&Arguments) -> Result<Value, Refusal>;

/// Largest number of hashes in a consistency proof that is read.
const MAX_HASHES: usize = 128;

/// Arguments *note, vkey*: verifies that the key has signed this checkpoint, of its own log or of one below its name.
///
/// # Errors
/// Any refusal of key, note or signature.
pub fn checkpoint(arguments: &Arguments) -> Result<Value, Refusal> {
    let [note, key] = take_arguments(arguments)?;
    let checkpoint = Checkpoint::verify(required_text(note)?, &parse_key(key)?)?;
    let Value::Object(mut answer) = checkpoint_to_json(&checkpoint) else {
        return Err(Refusal::new("refused", "a checkpoint must be an object"));
    };
    answer.insert("ok".to_owned(), Value::Bool(true));
    Ok(Value::Object(answer))
}

/// Arguments *record, proof, vkey*: verifies that the record, byte for byte, is where the `.tlog-proof` states.
///
/// # Errors
/// Any refusal of key, proof, checkpoint or inclusion.
pub fn record_proof(arguments: &Arguments) -> Result<Value, Refusal> {
    let [record, proof, key] = take_arguments(arguments)?;
    let proof = TlogProof::parse(required_text(proof)?)?;
    let checkpoint = proof.verify(required(record)?, &parse_key(key)?)?;
    Ok(json!({"ok": true, "index": proof.index.to_string(), "checkpoint": checkpoint_to_json(&checkpoint)}))
}

/// Arguments *older note, newer note, vkey, hashes as a JSON list of base64*: verifies that the older checkpoint of the
/// key's own log is a prefix of the newer one.
///
/// # Errors
/// `equivocation` when both have the same size but different roots: the two signed notes alone prove it to anyone. Any
/// other refusal means that consistency is not proven.
pub fn consistency(arguments: &Arguments) -> Result<Value, Refusal> {
    let [older, newer, key, hashes] = take_arguments(arguments)?;
    let key = parse_key(key)?;
    let (older, newer) = (
        verify_own_checkpoint(required_text(older)?, &key)?,
        verify_own_checkpoint(required_text(newer)?, &key)?,
    );
    if older.size == newer.size && older.root != newer.root {
        let message = format!("{} entries were signed with two different roots", older.size);
        return Err(Refusal::new("equivocation", message));
    }
    let hashes = parse_hashes(required_text(hashes)?)?;
    if older.size == 0 {
        // Every log is an extension of the empty log.
        if older.root != Mmr::new().root() || !hashes.is_empty() {
            return Err(Refusal::new(
                "root_mismatch",
                "the older checkpoint has 0 entries, but its root or its proof is not that of an empty log",
            ));
        }
    } else {
        verify_consistency(older.size, &older.root, newer.size, &newer.root, &hashes)?;
    }
    Ok(json!({"ok": true, "older": checkpoint_to_json(&older), "newer": checkpoint_to_json(&newer)}))
}

/// Arguments *entry, proof, vkey, the ledger's vkey or nothing*: checks whether an entry of the aggregate log is where
/// the `.tlog-proof` states, and whether the head in it is signed; also returns the path to the root.
///
/// # Errors
/// If there is no valid proof to check. A failed check is in the steps, and `ok` is false.
pub fn entry(arguments: &Arguments) -> Result<Value, Refusal> {
    let [entry, proof, key, ledger_key] = take_arguments(arguments)?;
    let (entry, key) = (required(entry)?, parse_key(key)?);
    let proof = TlogProof::parse(required_text(proof)?)?;
    let claimed = Checkpoint::parse_unverified(&proof.checkpoint)?;
    let leaf = leaf_hash(entry);
    let mut steps = Steps::default();
    steps.record(
        "signature",
        format!(
            "the checkpoint of {} entries is signed by {}",
            claimed.size,
            key.name()
        ),
        verify_own_checkpoint(&proof.checkpoint, &key),
    );
    steps.record(
        "inclusion",
        format!("the bytes of the entry at index {} lead to the root", proof.index),
        verify_inclusion(&leaf, proof.index, claimed.size, &proof.hashes, &claimed.root),
    );
    let head = steps.record(
        "entry",
        "the entry matches the checkpoint that it contains",
        read_entry(entry),
    );
    match (&head, ledger_key) {
        (None, _) => {}
        // The auditor's own access log.
        (Some(head), _) if head.origin.starts_with(&format!("{}/", key.name())) => {
            steps.record(
                "head",
                "the checkpoint in the entry is signed by the auditor's key",
                Checkpoint::verify(&head.checkpoint, &key).map_err(Refusal::from),
            );
        }
        (Some(_), None) => steps.record_skipped(
            "head",
            "the checkpoint in the entry was not checked: the ledger's key is missing",
        ),
        (Some(head), ledger_key) => {
            steps.record(
                "head",
                "the checkpoint in the entry is signed by the ledger's key",
                parse_key(ledger_key)
                    .and_then(|key| Checkpoint::verify(&head.checkpoint, &key).map_err(Refusal::from)),
            );
        }
    }
    let path = inclusion_path(leaf, proof.index, claimed.size, &proof.hashes);
    let computed = path.last().map_or(leaf, |step| step.node);
    let path: Vec<Value> = path
        .iter()
        .map(|step| {
            json!({"sibling": STANDARD.encode(step.sibling), "left": step.is_left, "node": STANDARD.encode(step.node)})
        })
        .collect();
    Ok(json!({
        "ok": steps.none_failed(), "steps": steps.all(), "index": proof.index.to_string(),
        "leaf": STANDARD.encode(leaf), "path": path, "computed": STANDARD.encode(computed),
        "checkpoint": checkpoint_to_json(&claimed),
    }))
}

/// Arguments *receipt, the ledger's vkey, the request or nothing, the answer or nothing*: returns every step of checking
/// a receipt (`docs/reference/ledger-format.md`, section 4).
///
/// # Errors
/// When the receipt or the key is invalid. A failed check is in the steps, and `ok` is false.
pub fn receipt(arguments: &Arguments) -> Result<Value, Refusal> {
    let [receipt, key, request, response] = take_arguments(arguments)?;
    let receipt = Receipt::parse(required(receipt)?)?;
    let mut steps = Steps::default();
    let key = receipt.extend_key_lineage(&parse_key(key)?)?;
    let records = receipt.verify(&key, request, response, &mut steps);
    Ok(json!({
        "ok": steps.none_failed(), "steps": steps.all(), "id": receipt.id, "complete": receipt.complete,
        "records": records,
    }))
}

/// A node of a path: its sibling's hash, whether the sibling is on the left, and the hash of their parent.
struct PathStep {
    sibling: Hash,
    is_left: bool,
    node: Hash,
}

/// Repeats the computation of [`verify_inclusion`] for display. It does not affect the result.
fn inclusion_path(leaf: Hash, index: u64, size: u64, hashes: &[Hash]) -> Vec<PathStep> {
    let (mut at, mut last, mut node) = (index, size.saturating_sub(1), leaf);
    let step = |&sibling: &Hash| {
        let left = at & 1 == 1 || at == last;
        node = if left {
            node_hash(&sibling, &node)
        } else {
            node_hash(&node, &sibling)
        };
        while left && at & 1 == 0 && at != 0 {
            at >>= 1;
            last >>= 1;
        }
        at >>= 1;
        last >>= 1;
        PathStep {
            sibling,
            is_left: left,
            node,
        }
    };
    hashes.iter().map(step).collect()
}

#[derive(Deserialize)]
struct EntryHeader {
    v: u32,
    origin: String,
    size: u64,
    checkpoint: String,
}

/// Reads an entry, whose checkpoint must be for the log and size that the entry names.
fn read_entry(entry: &[u8]) -> Result<EntryHeader, Refusal> {
    let head: EntryHeader =
        serde_json::from_slice(entry).map_err(|error| Refusal::new("entry", error.to_string()))?;
    if head.v != 1 {
        return Err(Refusal::new(
            "entry",
            format!(
                "format version {} is not supported: this program reads version 1",
                head.v
            ),
        ));
    }
    let checkpoint = Checkpoint::parse_unverified(&head.checkpoint)?;
    if (&checkpoint.origin, checkpoint.size) != (&head.origin, head.size) {
        return Err(Refusal::new(
            "entry",
            "the checkpoint in the entry is for another log or size",
        ));
    }
    Ok(head)
}

/// Verifies a checkpoint of the log that has the key's name.
fn verify_own_checkpoint(note: &str, key: &VerifyingKey) -> Result<Checkpoint, Refusal> {
    let checkpoint = Checkpoint::verify(note, key)?;
    if checkpoint.origin != key.name() {
        return Err(Refusal::new(
            "other_origin",
            format!("{:?} is not the log of this key", checkpoint.origin),
        ));
    }
    Ok(checkpoint)
}

fn take_arguments<const N: usize>(arguments: &Arguments) -> Result<[Option<&[u8]>; N], Refusal> {
    let arguments: Vec<Option<&[u8]>> = arguments.iter().map(Option::as_deref).collect();
    let count = arguments.len();
    arguments.try_into().map_err(|_| {
        Refusal::new(
            "arguments",
            format!("this question has {N} arguments, not {count}"),
        )
    })
}

fn required(argument: Option<&[u8]>) -> Result<&[u8], Refusal> {
    argument.ok_or_else(|| Refusal::new("arguments", "an argument is missing"))
}

fn required_text(argument: Option<&[u8]>) -> Result<&str, Refusal> {
    std::str::from_utf8(required(argument)?).map_err(|_| Refusal::new("arguments", "a text is not UTF-8"))
}

fn parse_key(argument: Option<&[u8]>) -> Result<VerifyingKey, Refusal> {
    Ok(VerifyingKey::from_file_text(required_text(argument)?)?)
}

fn parse_hashes(list: &str) -> Result<Vec<Hash>, Refusal> {
    let refused = || Refusal::new("hashes", "expected a list of hashes in base64");
    let list: Vec<String> = serde_json::from_str(list).map_err(|_| refused())?;
    if list.len() > MAX_HASHES {
        return Err(refused());
    }
    list.iter()
        .map(|text| parse_hash(text).ok_or_else(refused))
        .collect()
}

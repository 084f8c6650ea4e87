//! The questions, each with its arguments in order. Texts are UTF-8, keys are vkeys, behind which statements of
//! succession may stand. Sizes and numbers in answers are
//! decimal texts: a browser's numbers end at 2^53.

use crate::Refusal;
use crate::encoding::{hash_of, told};
use crate::receipt::Receipt;
use crate::step::Steps;
use base64::{Engine, engine::general_purpose::STANDARD};
use proofgate_ledger::{
    Checkpoint, Hash, Mmr, TlogProof, VerifyingKey, leaf_hash, node_hash, verify_consistency,
    verify_inclusion,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// What was handed over.
pub type Arguments = [Option<Vec<u8>>];
/// A question, which takes what was handed over.
pub type Question = fn(&Arguments) -> Result<Value, Refusal>;

/// Hashes of a proof of consistency: at most this many are read.
const MOST_HASHES: usize = 128;

/// *note, vkey*: whether the key, or one below whose name the log is, signed this checkpoint.
///
/// # Errors
/// Any refusal of key, note or signature.
pub fn checkpoint(arguments: &Arguments) -> Result<Value, Refusal> {
    let [note, key] = take(arguments)?;
    let checkpoint = Checkpoint::verify(text(note)?, &key_of(key)?)?;
    let Value::Object(mut answer) = told(&checkpoint) else {
        return Err(Refusal::new("refused", "a checkpoint must be an object"));
    };
    answer.insert("ok".to_owned(), Value::Bool(true));
    Ok(Value::Object(answer))
}

/// *record, proof, vkey*: whether the record, byte for byte, stands where the `.tlog-proof` says.
///
/// # Errors
/// Any refusal of key, proof, checkpoint or inclusion.
pub fn record_proof(arguments: &Arguments) -> Result<Value, Refusal> {
    let [record, proof, key] = take(arguments)?;
    let proof = TlogProof::parse(text(proof)?)?;
    let checkpoint = proof.verify(required(record)?, &key_of(key)?)?;
    Ok(json!({"ok": true, "index": proof.index.to_string(), "checkpoint": told(&checkpoint)}))
}

/// *older note, newer note, vkey, hashes as a JSON list of base64*: whether one history of the log of this key, which has
/// its name, leads from the one to the other.
///
/// # Errors
/// `equivocation` when both have one size and not one root: both are signed, so that alone shows it to anybody. Any other
/// refusal says that it is not shown.
pub fn consistency(arguments: &Arguments) -> Result<Value, Refusal> {
    let [older, newer, key, hashes] = take(arguments)?;
    let key = key_of(key)?;
    let (older, newer) = (own(text(older)?, &key)?, own(text(newer)?, &key)?);
    if older.size == newer.size && older.root != newer.root {
        let message = format!("{} entries were signed with two roots", older.size);
        return Err(Refusal::new("equivocation", message));
    }
    let hashes = hashes_of(text(hashes)?)?;
    if older.size == 0 {
        // Every log goes on from the empty one.
        if older.root != Mmr::new().root() || !hashes.is_empty() {
            return Err(Refusal::new(
                "root_mismatch",
                "this is not the root of an empty log",
            ));
        }
    } else {
        verify_consistency(older.size, &older.root, newer.size, &newer.root, &hashes)?;
    }
    Ok(json!({"ok": true, "older": told(&older), "newer": told(&newer)}))
}

/// *entry, proof, vkey, the ledger's vkey or nothing*: whether an entry of the aggregate log stands where the `.tlog-proof`
/// says, what the path to the root is, and whether the head in it is signed.
///
/// # Errors
/// When there is no proof to look at. What does not hold is told by the steps, and `ok` is false.
pub fn entry(arguments: &Arguments) -> Result<Value, Refusal> {
    let [entry, proof, key, ledger_key] = take(arguments)?;
    let (entry, key) = (required(entry)?, key_of(key)?);
    let proof = TlogProof::parse(text(proof)?)?;
    let claimed = Checkpoint::parse_unverified(&proof.checkpoint)?;
    let leaf = leaf_hash(entry);
    let mut steps = Steps::default();
    steps.take(
        "signature",
        format!(
            "the checkpoint of {} entries is signed by {}",
            claimed.size,
            key.name()
        ),
        own(&proof.checkpoint, &key),
    );
    steps.take(
        "inclusion",
        format!(
            "the bytes of the entry, at index {}, lead to the root",
            proof.index
        ),
        verify_inclusion(&leaf, proof.index, claimed.size, &proof.hashes, &claimed.root),
    );
    let head = steps.take(
        "entry",
        "the entry matches the checkpoint in it",
        read_entry(entry),
    );
    match (&head, ledger_key) {
        (None, _) => {}
        // The auditor's own log of who read what.
        (Some(head), _) if head.origin.starts_with(&format!("{}/", key.name())) => {
            steps.take(
                "head",
                "the checkpoint in it is signed by the auditor's key",
                Checkpoint::verify(&head.checkpoint, &key).map_err(Refusal::from),
            );
        }
        (Some(_), None) => steps.open(
            "head",
            "the checkpoint in it was not checked: the ledger's key is missing",
        ),
        (Some(head), ledger_key) => {
            steps.take(
                "head",
                "the checkpoint in it is signed by the ledger's key",
                key_of(ledger_key)
                    .and_then(|key| Checkpoint::verify(&head.checkpoint, &key).map_err(Refusal::from)),
            );
        }
    }
    let path = path(leaf, proof.index, claimed.size, &proof.hashes);
    let computed = path.last().map_or(leaf, |step| step.node);
    let path: Vec<Value> = path
        .iter()
        .map(|step| {
            json!({"sibling": STANDARD.encode(step.sibling), "left": step.left, "node": STANDARD.encode(step.node)})
        })
        .collect();
    Ok(json!({
        "ok": steps.hold(), "steps": steps.all(), "index": proof.index.to_string(),
        "leaf": STANDARD.encode(leaf), "path": path, "computed": STANDARD.encode(computed),
        "checkpoint": told(&claimed),
    }))
}

/// *receipt, the ledger's vkey, the request or nothing, the answer or nothing*: every step of checking a receipt
/// (`docs/reference/ledger-format.md`, section 4).
///
/// # Errors
/// When it is no receipt or no key. What does not hold is told by the steps, and `ok` is false.
pub fn receipt(arguments: &Arguments) -> Result<Value, Refusal> {
    let [receipt, key, request, response] = take(arguments)?;
    let receipt = Receipt::parse(required(receipt)?)?;
    let mut steps = Steps::default();
    let key = receipt.follow(&key_of(key)?)?;
    let records = receipt.verify(&key, request, response, &mut steps);
    Ok(json!({
        "ok": steps.hold(), "steps": steps.all(), "id": receipt.id, "complete": receipt.complete,
        "records": records,
    }))
}

/// A node of a path: the hash beside it, on which side that stands, and what the two make.
struct PathStep {
    sibling: Hash,
    left: bool,
    node: Hash,
}

/// What [`verify_inclusion`] goes through, for a drawing of it. It decides nothing.
fn path(leaf: Hash, index: u64, size: u64, hashes: &[Hash]) -> Vec<PathStep> {
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
        PathStep { sibling, left, node }
    };
    hashes.iter().map(step).collect()
}

#[derive(Deserialize)]
struct Head {
    v: u32,
    origin: String,
    size: u64,
    checkpoint: String,
}

/// Reads an entry, whose checkpoint has to be of the log and size that it names.
fn read_entry(entry: &[u8]) -> Result<Head, Refusal> {
    let head: Head =
        serde_json::from_slice(entry).map_err(|error| Refusal::new("entry", error.to_string()))?;
    if head.v != 1 {
        return Err(Refusal::new("entry", format!("version {} is not 1", head.v)));
    }
    let checkpoint = Checkpoint::parse_unverified(&head.checkpoint)?;
    if (&checkpoint.origin, checkpoint.size) != (&head.origin, head.size) {
        return Err(Refusal::new(
            "entry",
            "the checkpoint in it is for another log or size",
        ));
    }
    Ok(head)
}

/// A checkpoint of the one log whose name the key has.
fn own(note: &str, key: &VerifyingKey) -> Result<Checkpoint, Refusal> {
    let checkpoint = Checkpoint::verify(note, key)?;
    if checkpoint.origin != key.name() {
        return Err(Refusal::new(
            "other_origin",
            format!("{:?} is not the log of this key", checkpoint.origin),
        ));
    }
    Ok(checkpoint)
}

fn take<const N: usize>(arguments: &Arguments) -> Result<[Option<&[u8]>; N], Refusal> {
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

fn text(argument: Option<&[u8]>) -> Result<&str, Refusal> {
    std::str::from_utf8(required(argument)?).map_err(|_| Refusal::new("arguments", "a text is not UTF-8"))
}

fn key_of(argument: Option<&[u8]>) -> Result<VerifyingKey, Refusal> {
    Ok(VerifyingKey::from_file_text(text(argument)?)?)
}

fn hashes_of(list: &str) -> Result<Vec<Hash>, Refusal> {
    let refused = || Refusal::new("hashes", "expected a list of hashes in base64");
    let list: Vec<String> = serde_json::from_str(list).map_err(|_| refused())?;
    if list.len() > MOST_HASHES {
        return Err(refused());
    }
    list.iter()
        .map(|text| hash_of(text).ok_or_else(refused))
        .collect()
}

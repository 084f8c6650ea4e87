//! Removed logs: the tombstone that the retention job signed, and the retained parts of the log.
//!
//! | file | contents |
//! |---|---|
//! | `tombstone` | the retention job's signed note about the end of the log and the reason for its removal |
//! | `<seq>.record`, `<seq>.tlog-proof` | the log's `open`, `takeover` and `seal` records, with proofs under the last checkpoint |
//! | `<size>.consistency` | proof that the log at that size is a prefix of its final state |
//! | `checkpoint`, `<incarnation>.checkpoint` | unchanged |
//!
//! With these files, the chain of the shard continues through the removed log. Records that still
//! exist are no longer evidence and are not read.

use crate::layout::incarnation_of;
use crate::payloads::{PAYLOAD_INDEX_FILE, PAYLOADS_FILE};
use crate::rules::LogTracker;
use crate::salts::SALTS_FILE;
use crate::segment::SegmentName;
use crate::tree_file::TREE_FILE;
use crate::{EvidenceError, ReadStorage, Refusal, read_full};
use base64::{Engine, engine::general_purpose::STANDARD};
use proofgate_ledger::record::{MAX_RECORD_BYTES, Record};
use proofgate_ledger::{
    Checkpoint, Hash, LedgerError, MAX_STATEMENT_BYTES, MAX_TLOG_PROOF_BYTES, TlogProof, Tombstone,
    VerifyingKey, leaf_hash, verify_consistency, verify_inclusion,
};
use std::io;
use std::path::Path;
use ulid::Ulid;

pub use crate::layout::TOMBSTONE_FILE;

/// Name of a file of the retention job while it is being written.
pub const TEMPORARY_FILE: &str = "keeping.tmp";
/// Most retained records of a log: the open record, takeovers and a seal.
const MAX_RETAINED_RECORDS: usize = 64;
/// Largest proof of consistency, in bytes: the size for a tree of 2^63 leaves.
const MAX_CONSISTENCY_BYTES: usize = 45 * 128;
/// Files that a writer leaves beside segments, tree and salts.
const OTHER_FILES: [&str; 8] = [
    PAYLOADS_FILE,
    PAYLOAD_INDEX_FILE,
    "resume",
    "resume.tmp",
    "unlocked",
    "checkpoint.tmp",
    "erasures",
    TEMPORARY_FILE,
];

/// Returns the file name of a retained record.
#[must_use]
pub fn record_name(seq: u64) -> String {
    format!("{seq:020}.record")
}

/// Returns the file name of a retained record's proof.
#[must_use]
pub fn proof_name(seq: u64) -> String {
    format!("{seq:020}.tlog-proof")
}

/// Returns the file name of the proof that the log at `size` is a prefix of its final state.
#[must_use]
pub fn consistency_name(size: u64) -> String {
    format!("{size:020}.consistency")
}

/// Returns whether a removal deletes the file with this name.
#[must_use]
pub fn is_removable(name: &str) -> bool {
    SegmentName::parse(name).is_some()
        || name == TREE_FILE
        || name == SALTS_FILE
        || OTHER_FILES.contains(&name)
}

/// Returns whether a file name is the name of a retained record or of its proof.
#[must_use]
pub fn is_retained(name: &str) -> bool {
    name.ends_with(".record") || name.ends_with(".tlog-proof")
}

/// The retained parts of a removed log, after all checks.
#[derive(Clone, Debug)]
pub struct RemovedLog {
    /// The tombstone that the retention job signed.
    pub tombstone: Tombstone,
    /// The tombstone's note, as it was read.
    pub note: String,
    /// The last checkpoint, as it was signed.
    pub checkpoint: String,
    /// The state that follows from the retained records. The records that end the exchanges are not
    /// known.
    pub tracker: LogTracker,
    /// Names of files that the removal should have deleted but that still exist.
    pub leftover_files: Vec<String>,
    /// Time of the newest record that is retained or that the tombstone mentions, in unix microseconds.
    pub newest_time: u64,
}

impl RemovedLog {
    /// Returns the final checkpoint of the log.
    #[must_use]
    pub fn head(&self) -> Checkpoint {
        Checkpoint {
            origin: self.tombstone.origin.clone(),
            size: self.tombstone.size,
            root: self.tombstone.root,
        }
    }

    /// Returns whether the tombstone's time is before the time of records of the removed log.
    #[must_use]
    pub fn is_backdated(&self) -> bool {
        self.tombstone.removed_at < self.newest_time
    }
}

/// The removal state of a log's directory.
#[derive(Debug)]
pub enum RemovalState {
    /// There is no tombstone.
    None,
    /// The log was removed.
    Done(Box<RemovedLog>),
    /// There is a tombstone, but it is refused for this reason.
    Refused(Refusal),
}

/// Reads the stored tombstone; `None` when there is no tombstone.
///
/// # Errors
/// [`EvidenceError::Io`]; [`EvidenceError::Corruption`] when the file is not text.
pub fn read_tombstone(storage: &dyn ReadStorage, dir: &Path) -> Result<Option<String>, EvidenceError> {
    let path = dir.join(TOMBSTONE_FILE);
    match read_bounded(storage, &path, MAX_STATEMENT_BYTES)? {
        Some(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|error| EvidenceError::Corruption {
                path,
                offset: error.utf8_error().valid_up_to() as u64,
                reason: "the tombstone is not UTF-8".to_owned(),
            }),
        None => Ok(None),
    }
}

/// Returns the error for a record that a log does not hold.
///
/// # Errors
/// Same as [`read_tombstone`].
pub(crate) fn missing_record_error(
    storage: &dyn ReadStorage,
    dir: &Path,
    seq: u64,
) -> Result<EvidenceError, EvidenceError> {
    let dir = dir.to_owned();
    Ok(match read_tombstone(storage, &dir)? {
        Some(_) => EvidenceError::Removed(dir),
        None => EvidenceError::NoSuchRecord { dir, seq },
    })
}

/// Reads and checks the retained parts of a removed log: the tombstone with the retention key, the
/// records and their proofs with the ledger key. If one of these keys is not given, its signatures
/// are not checked.
///
/// # Errors
/// [`EvidenceError::Io`].
pub fn read(
    storage: &dyn ReadStorage,
    dir: &Path,
    key: Option<&VerifyingKey>,
    keeping: Option<&VerifyingKey>,
) -> Result<RemovalState, EvidenceError> {
    let note = match read_tombstone(storage, dir) {
        Ok(None) => return Ok(RemovalState::None),
        Ok(Some(note)) => note,
        Err(EvidenceError::Corruption { reason, .. }) => return Ok(RemovalState::Refused(reason.into())),
        Err(error) => return Err(error),
    };
    let believed = match keeping {
        Some(keeping) => Tombstone::verify(&note, keeping),
        None => Tombstone::parse_unverified(&note),
    };
    let tombstone = match believed {
        Ok(tombstone) => tombstone,
        // A tombstone signed by another key may be a forgery, so `wrong_key` is not set.
        Err(error) => return Ok(RemovalState::Refused(error.to_string().into())),
    };
    let incarnation = incarnation_of(dir)?;
    if !tombstone.origin.ends_with(&format!("/{incarnation}")) {
        let why = format!("it is the tombstone of another log, {}", tombstone.origin);
        return Ok(RemovalState::Refused(why.into()));
    }
    let names = storage.list(dir).map_err(EvidenceError::io("list", dir))?;
    Ok(
        match read_retained(storage, dir, incarnation, &names, &tombstone, key)? {
            Ok((checkpoint, rules, newest)) => RemovalState::Done(Box::new(RemovedLog {
                newest_time: newest.max(tombstone.newest_time),
                tombstone,
                note,
                checkpoint,
                tracker: rules,
                leftover_files: names.into_iter().filter(|name| is_removable(name)).collect(),
            })),
            Err(why) => RemovalState::Refused(why),
        },
    )
}

/// The last checkpoint, the state after the retained records, and the time of the newest retained
/// record.
type RetainedSummary = Result<(String, LogTracker, u64), Refusal>;

/// Reads the retained records, and verifies each under the last checkpoint.
fn read_retained(
    storage: &dyn ReadStorage,
    dir: &Path,
    incarnation: Ulid,
    names: &[String],
    tombstone: &Tombstone,
    key: Option<&VerifyingKey>,
) -> Result<RetainedSummary, EvidenceError> {
    let kept: Vec<u64> = names.iter().filter_map(|name| retained_seq(name)).collect();
    if kept.first() != Some(&0) {
        return Ok(Err("its open record is missing".to_owned().into()));
    }
    if kept.len() > MAX_RETAINED_RECORDS {
        return Ok(Err(format!(
            "too many records are stored with the tombstone: {}",
            kept.len()
        )
        .into()));
    }
    let mut rules = LogTracker::new(incarnation);
    let mut checkpoint = String::new();
    let mut newest = 0;
    for seq in kept {
        let record = read_bounded(storage, &dir.join(record_name(seq)), MAX_RECORD_BYTES)?;
        let proof = read_bounded(storage, &dir.join(proof_name(seq)), MAX_TLOG_PROOF_BYTES)?;
        let (Some(record), Some(proof)) = (record, proof) else {
            return Ok(Err(format!("record {seq} was kept without its proof").into()));
        };
        match check_retained(seq, &record, &proof, tombstone, key) {
            Ok(note) => checkpoint = note,
            Err(why) => return Ok(Err(why.with_context(&format!("record {seq}, which was kept")))),
        }
        let taken = rules.process(seq, &record);
        newest = newest.max(taken.as_ref().map_or(0, Record::ts));
        let known = match &taken {
            Ok(Record::Open(_) | Record::Takeover(_)) => true,
            Ok(Record::Seal(_)) => seq.checked_add(1) == Some(tombstone.size),
            _ => false,
        };
        if !known {
            let why = taken.err();
            let why = why.unwrap_or_else(|| {
                format!("record {seq} is of a kind that is not kept when a log is removed")
            });
            return Ok(Err(why.into()));
        }
    }
    if rules
        .opening()
        .is_none_or(|opened| opened.origin != tombstone.origin)
    {
        let why = format!(
            "it is for {}, but the open record of this log has another origin",
            tombstone.origin
        );
        return Ok(Err(why.into()));
    }
    rules.mark_missing();
    Ok(Ok((checkpoint, rules, newest)))
}

fn check_retained(
    seq: u64,
    record: &[u8],
    proof: &[u8],
    tombstone: &Tombstone,
    key: Option<&VerifyingKey>,
) -> Result<String, Refusal> {
    let text = std::str::from_utf8(proof).map_err(|error| error.to_string())?;
    let refused = |error: LedgerError| Refusal::from(error);
    let proof = TlogProof::parse(text).map_err(refused)?;
    let signed = match key {
        Some(key) => proof.verify(record, key).map_err(refused)?,
        None => {
            let signed = Checkpoint::parse_unverified(&proof.checkpoint).map_err(refused)?;
            verify_inclusion(
                &leaf_hash(record),
                proof.index,
                signed.size,
                &proof.hashes,
                &signed.root,
            )
            .map_err(refused)?;
            signed
        }
    };
    if proof.index != seq {
        return Err(format!("the proof is for record {}", proof.index).into());
    }
    if (&signed.origin, signed.size, signed.root) != (&tombstone.origin, tombstone.size, tombstone.root) {
        return Err(format!(
            "the tombstone says that {} ended with {} records, but the proof leads to another checkpoint: {} with {} records",
            tombstone.origin, tombstone.size, signed.origin, signed.size
        )
        .into());
    }
    Ok(proof.checkpoint)
}

fn retained_seq(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".record")?;
    let seq = number.parse().ok()?;
    (record_name(seq) == name).then_some(seq)
}

/// Returns whether the removed log at `size` is proven to be a prefix of its final state; `None` when there is no proof.
///
/// # Errors
/// [`EvidenceError::Io`].
pub fn is_proven_prefix(
    storage: &dyn ReadStorage,
    dir: &Path,
    (size, root): (u64, Hash),
    last: &Checkpoint,
) -> Result<Option<bool>, EvidenceError> {
    if size == last.size {
        return Ok(Some(root == last.root));
    }
    if size > last.size {
        return Ok(Some(false));
    }
    let Some(hashes) = read_consistency(storage, dir, size)? else {
        return Ok(None);
    };
    Ok(Some(
        verify_consistency(size, &root, last.size, &last.root, &hashes).is_ok(),
    ))
}

/// Reads the stored proof from `size` to the final state of a removed log; `None` when there is no
/// valid proof.
///
/// # Errors
/// [`EvidenceError::Io`].
pub fn read_consistency(
    storage: &dyn ReadStorage,
    dir: &Path,
    size: u64,
) -> Result<Option<Vec<Hash>>, EvidenceError> {
    let Some(bytes) = read_bounded(storage, &dir.join(consistency_name(size)), MAX_CONSISTENCY_BYTES)? else {
        return Ok(None);
    };
    let Ok(text) = String::from_utf8(bytes) else {
        return Ok(None);
    };
    let hashes = text
        .lines()
        .map(|line| STANDARD.decode(line).ok()?.try_into().ok());
    Ok(hashes.collect())
}

/// Returns the text of a proof of consistency: one base64 hash per line.
#[must_use]
pub fn consistency_text(hashes: &[Hash]) -> String {
    hashes
        .iter()
        .map(|hash| format!("{}\n", STANDARD.encode(hash)))
        .collect()
}

/// Reads a file of at most `most` bytes, or `most + 1` bytes of a longer one; `None` when there is no file.
fn read_bounded(
    storage: &dyn ReadStorage,
    path: &Path,
    most: usize,
) -> Result<Option<Vec<u8>>, EvidenceError> {
    let file = match storage.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(EvidenceError::io("open", path)(error)),
    };
    let mut bytes = vec![0; most + 1];
    let read = read_full(&*file, &mut bytes, 0).map_err(EvidenceError::io("read", path))?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

//! `fsck`: reads everything under a path and says what is wrong, where, and how bad it is. It changes nothing.
//!
//! CRCs find accidents, the tree finds tampering: records are checked against their checksums and chain, the tree file
//! and the signed checkpoint against the records, and every incarnation against what its successor recorded of it.
//! A log that is being written can be checked too.

mod analyses;
mod chain;
mod erasure_check;
mod exchanges;
mod held;
mod hold_check;
mod keys;
mod payload_check;
mod removed;
mod salt_check;
mod scan;
mod shredded;
mod tree_check;
mod unreadable;

use crate::key_destructions::Destroyed;
use crate::layout::shards;
use crate::pinned::{Pinned, PinnedFile};
use crate::{EvidenceError, ReadStorage, ShredKeys};
use proofgate_ledger::{Hash, VerifyingKey};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use held::HeldCheckpoint;
pub use keys::KeyReport;

/// How bad it is; the worst finding decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything is there and was checked.
    Ok,
    /// What is there is right, and something could not be checked or ended early.
    Incomplete,
    /// The log is well formed and contradicts a head that was signed or recorded.
    Diverged,
    /// Stored bytes are damaged, or a signature or record is refused.
    Invalid,
}

impl Verdict {
    /// The process exit code: 0, 10, 30 or 40.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Incomplete => 10,
            Self::Diverged => 30,
            Self::Invalid => 40,
        }
    }
}

/// Whose signatures are checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keys<'k> {
    /// The ledger's key.
    pub ledger: Option<&'k VerifyingKey>,
    /// The key of whoever may remove logs.
    pub keeping: Option<&'k VerifyingKey>,
    /// The keys of tenants, for salts that need one.
    pub shred: Option<&'k ShredKeys>,
}

impl<'k> From<Option<&'k VerifyingKey>> for Keys<'k> {
    fn from(ledger: Option<&'k VerifyingKey>) -> Self {
        Self {
            ledger,
            ..Self::default()
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The file or directory.
    pub file: String,
    /// Byte offset of the frame, node or byte concerned.
    pub offset: u64,
    /// How bad it is.
    pub verdict: Verdict,
    /// The stable name of what concerns a removal or an erasure; none of other findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// What is wrong, in a sentence.
    pub message: String,
}

/// What is known of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointState {
    /// There is none yet.
    Missing,
    /// It matches the records; without a key its signature was not checked.
    Unverified,
    /// It matches the records and is signed.
    Verified,
    /// It is refused, or contradicts the records.
    Bad,
}

/// What is known of a tree file. Only a wrong or missing one matters: it can be rebuilt from the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeState {
    /// It is not there.
    Missing,
    /// All its nodes are right and some are not there yet.
    Short,
    /// It holds every node.
    Complete,
    /// It holds every node, and more behind them.
    Long,
    /// A node is wrong.
    Bad,
}

/// That a log was removed, as its tombstone says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemovedReport {
    /// When, in unix microseconds.
    pub time: u64,
    /// Admissions that it held.
    pub exchanges: u64,
    /// How long its records had to be kept, in days.
    pub minimum_days: u64,
    /// Who removed it.
    pub author: String,
    /// Why.
    pub reason: String,
    /// The ticket that asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// Whether it was checked that the keeper signed it.
    pub verified: bool,
}

/// What was found of one incarnation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IncarnationReport {
    /// Its directory.
    pub dir: String,
    /// Its ULID.
    pub incarnation: String,
    /// Its origin, as its `open` record states it.
    pub origin: Option<String>,
    /// Segments.
    pub segments: u64,
    /// Records that are part of the log.
    pub records: u64,
    /// Bytes of those records.
    pub bytes: u64,
    /// Root over them, base64; null when records before the end are lost.
    pub root: Option<String>,
    /// Whether the last record is a seal.
    pub sealed: bool,
    /// The vkey of the ledger's key that signs it, as its `open` record states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The checkpoint.
    pub checkpoint: CheckpointState,
    /// Records it covers.
    pub checkpoint_size: u64,
    /// The tree file.
    pub tree: TreeState,
    /// Whether the log was cut at a torn tail.
    pub torn: bool,
    /// Records of kinds that this version does not know.
    pub unknown_kinds: u64,
    /// Admissions whose salt is all zeros: erased on purpose, or lost with the power; and those whose shred key a keeper signed
    /// to have been destroyed. One of another value is a finding.
    pub erased_salts: u64,
    /// Admissions whose salt needs a shred key that is not at hand: it was not compared with the id that they name.
    pub unchecked_salts: u64,
    /// That it was removed by right; absent of a log that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<RemovedReport>,
    /// By which digests its records name configurations, each with the number of the first that does.
    #[serde(skip)]
    pub configurations: BTreeMap<Hash, u64>,
    /// Everything that was found, in the order of the log.
    pub findings: Vec<Finding>,
}

/// What was found under a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The ledger's directory, where all of it was checked.
    #[serde(skip)]
    pub ledger: Option<PathBuf>,
    /// The worst of all findings.
    pub verdict: Verdict,
    /// Exit code of the verdict.
    pub exit_code: u8,
    /// Records in all.
    pub records: u64,
    /// Checkpoints held outside that the logs were compared with.
    pub against: u64,
    /// The ledger's keys that are known, oldest first; none without one.
    pub keys: Vec<KeyReport>,
    /// Each incarnation, by shard and age.
    pub incarnations: Vec<IncarnationReport>,
    /// What concerns none of them: logs that a checkpoint held outside speaks of and that are not there, and statements about
    /// keys.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Adds what was found besides, which concerns no log by itself.
    pub fn add(&mut self, findings: Vec<Finding>) {
        let worst = findings.iter().map(|finding| finding.verdict).max();
        self.verdict = worst.map_or(self.verdict, |worst| worst.max(self.verdict));
        self.exit_code = self.verdict.exit_code();
        self.findings.extend(findings);
    }
}

/// Checks a gateway's directory, a shard's or one incarnation's. Without a key of the ledger, signatures are not checked,
/// which makes the verdict incomplete at best; and so does a log that was removed, without the keeper's key. Every checkpoint in `held`, kept outside of the volume, must be of a log that is there,
/// holds as many records, and leads to the same root.
///
/// # Errors
/// [`EvidenceError::NotALog`], and [`EvidenceError::Io`] when `path` or a shard cannot be listed. What else cannot be read is a
/// finding, and the rest is checked.
pub fn fsck<'k>(
    storage: &dyn ReadStorage,
    path: &Path,
    keys: impl Into<Keys<'k>>,
    held: &[HeldCheckpoint],
) -> Result<Report, EvidenceError> {
    check(storage, path, keys.into(), held, Of::Ledger)
}

/// As [`fsck`], of a copy without what a mirror leaves out: salts, trees, and the logs that go on behind the last of each
/// shard.
///
/// # Errors
/// As [`fsck`].
pub fn fsck_mirror<'k>(
    storage: &dyn ReadStorage,
    path: &Path,
    keys: impl Into<Keys<'k>>,
    held: &[HeldCheckpoint],
) -> Result<Report, EvidenceError> {
    check(storage, path, keys.into(), held, Of::Mirror)
}

/// As [`fsck_mirror`], of one log that has ended; and the files that were read for that, with the digests of just the bytes
/// that were.
///
/// # Errors
/// As [`fsck`], and [`EvidenceError::Io`] for whatever cannot be read: it is to be read again.
pub fn fsck_pinned<'k>(
    storage: &dyn ReadStorage,
    dir: &Path,
    keys: impl Into<Keys<'k>>,
    held: &[HeldCheckpoint],
) -> Result<(Report, Vec<PinnedFile>), EvidenceError> {
    let pinned = Pinned::new(storage);
    let report = check(&pinned, dir, keys.into(), held, Of::OneLog)?;
    Ok((report, pinned.files()))
}

/// What is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Ledger,
    /// A copy that leaves out what a mirror does.
    Mirror,
    /// One log of a ledger that is to be mirrored.
    OneLog,
}

fn check(
    storage: &dyn ReadStorage,
    path: &Path,
    keys: Keys<'_>,
    held: &[HeldCheckpoint],
    of: Of,
) -> Result<Report, EvidenceError> {
    let mut incarnations = Vec::new();
    let mut held = held::Held::new(held);
    // All files gone is what a checkpoint held outside tells best.
    let found = match shards(storage, path) {
        Err(EvidenceError::NotALog(_)) if !held.is_empty() => Vec::new(),
        other => other?,
    };
    let ledger = found.first().and_then(|shard| shard.dir.parent()).unwrap_or(path);
    let (line, mut findings) = match keys::follow(storage, ledger, keys.ledger) {
        Err(error) if of != Of::OneLog => {
            let found = unreadable::told(error, ": keys that follow the given one are not known")?;
            (keys.ledger.cloned(), vec![found])
        }
        other => other?,
    };
    if of == Of::OneLog {
        // What somebody has put beside the logs says nothing of this one.
        findings.clear();
    }
    let keys = Keys {
        ledger: line.as_ref(),
        ..keys
    };
    let mut destroyed = Destroyed::default();
    match shredded::read(storage, ledger, keys, of == Of::Ledger) {
        Ok((read, refused)) => {
            destroyed = read;
            findings.extend(refused);
        }
        Err(error) => findings.push(unreadable::told(
            error,
            ": which shred keys were destroyed is not known",
        )?),
    }
    if of == Of::Ledger {
        match hold_check::check(storage, ledger, keys) {
            Ok(found) => findings.extend(found),
            Err(error) => findings.push(unreadable::told(error, ": statements of holds are not checked")?),
        }
    }
    for shard in &found {
        chain::check(
            storage,
            shard,
            (keys, &destroyed, of),
            &mut held,
            &mut incarnations,
        )?;
    }
    findings.extend(held.unmet(path));
    let verdict = incarnations
        .iter()
        .flat_map(|report| &report.findings)
        .chain(&findings)
        .map(|finding| finding.verdict)
        .max();
    let verdict = verdict.unwrap_or(Verdict::Ok);
    let records = incarnations.iter().map(|report| report.records).sum();
    let is_whole = of != Of::OneLog && found.iter().all(|shard| shard.dir.parent() == Some(path));
    Ok(Report {
        ledger: is_whole.then(|| path.to_owned()),
        verdict,
        exit_code: verdict.exit_code(),
        records,
        against: held.len(),
        keys: keys::report(line.as_ref()),
        incarnations,
        findings,
    })
}

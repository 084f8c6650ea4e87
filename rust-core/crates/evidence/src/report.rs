//! What `fsck` reports.

use proofgate_ledger::Hash;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

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
    /// Whether it was checked that the retention job signed it.
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
    /// Admissions whose salt is all zeros: erased on purpose, or lost with the power; and those whose shred key the
    /// retention job signed to have been destroyed. One of another value is a finding.
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
    pub fn add_findings(&mut self, findings: Vec<Finding>) {
        let worst = findings.iter().map(|finding| finding.verdict).max();
        self.verdict = worst.map_or(self.verdict, |worst| worst.max(self.verdict));
        self.exit_code = self.verdict.exit_code();
        self.findings.extend(findings);
    }
}

/// A key of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyReport {
    /// Its vkey.
    pub vkey: String,
    /// The last moment at which it may begin a log, in unix microseconds; absent of the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

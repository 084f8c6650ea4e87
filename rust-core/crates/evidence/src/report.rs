//! The report of `fsck`.

use proofgate_ledger::Hash;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The severity of a finding. The worst finding determines the verdict of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All data is present and was checked.
    Ok,
    /// The data that is present is valid, but some data could not be checked or is missing.
    Incomplete,
    /// The log is well formed but contradicts a tree head that was signed or recorded.
    Diverged,
    /// Stored bytes are damaged, or a signature or record is refused.
    Invalid,
}

impl Verdict {
    /// Returns the process exit code: 0, 10, 30 or 40.
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

/// A problem that `fsck` found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The file or directory.
    pub file: String,
    /// Byte offset of the frame, node or byte concerned.
    pub offset: u64,
    /// Severity of the finding.
    pub verdict: Verdict,
    /// Stable machine code, for findings that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// A sentence that describes the problem.
    pub message: String,
}

/// The state of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointState {
    /// There is no checkpoint yet.
    Missing,
    /// The checkpoint matches the records. Its signature was not checked, because there was no key.
    Unverified,
    /// The checkpoint matches the records, and its signature was verified.
    Verified,
    /// The checkpoint is refused, or contradicts the records.
    Bad,
}

/// The state of a tree file, which can be rebuilt from the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeState {
    /// There is no tree file.
    Missing,
    /// All stored nodes are right, but nodes are missing at the end.
    Short,
    /// The file holds every node.
    Complete,
    /// The file holds every node, and more bytes after them.
    Long,
    /// A node is wrong.
    Bad,
}

/// The removal of a log, according to its tombstone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemovedReport {
    /// Time of the removal, in unix microseconds.
    pub time: u64,
    /// Number of admissions in the log.
    pub exchanges: u64,
    /// Minimum retention period of the log's records, in days.
    pub minimum_days: u64,
    /// Author of the removal.
    pub author: String,
    /// The reason for the removal.
    pub reason: String,
    /// The ticket that requested the removal, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// Whether the signature of the retention job was verified.
    pub verified: bool,
}

/// The result of `fsck` for one incarnation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IncarnationReport {
    /// Directory of the incarnation.
    pub dir: String,
    /// ULID of the incarnation.
    pub incarnation: String,
    /// Origin of the log according to its `open` record.
    pub origin: Option<String>,
    /// Number of segments.
    pub segments: u64,
    /// Number of records that are part of the log.
    pub records: u64,
    /// Size of those records in bytes.
    pub bytes: u64,
    /// Root over these records, base64; null when records before the end are lost.
    pub root: Option<String>,
    /// Whether the last record is a seal.
    pub sealed: bool,
    /// The vkey of the ledger key that signs the log, according to its `open` record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// State of the checkpoint.
    pub checkpoint: CheckpointState,
    /// Number of records that the checkpoint covers.
    pub checkpoint_size: u64,
    /// State of the tree file.
    pub tree: TreeState,
    /// Whether the log was cut at a torn tail.
    pub torn: bool,
    /// Number of records of kinds that this version does not know.
    pub unknown_kinds: u64,
    /// Number of admissions whose salt is all zeros (erased on purpose, or lost in a power failure), or whose shred key
    /// was destroyed according to the retention job. A salt with any other wrong value is a finding.
    pub erased_salts: u64,
    /// Number of admissions whose salt was not compared with its id, because the necessary shred
    /// key was not provided.
    pub unchecked_salts: u64,
    /// The removal of the log; absent when it was not removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<RemovedReport>,
    /// The digests by which the log's records name configurations, each with the number of the
    /// first such record.
    #[serde(skip)]
    pub configurations: BTreeMap<Hash, u64>,
    /// All findings, in the order of the log.
    pub findings: Vec<Finding>,
}

/// The result of `fsck` for a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The ledger's directory, when a whole ledger was checked.
    #[serde(skip)]
    pub ledger: Option<PathBuf>,
    /// The worst of all findings.
    pub verdict: Verdict,
    /// The exit code for the verdict.
    pub exit_code: u8,
    /// Total number of records.
    pub records: u64,
    /// Number of held checkpoints that the logs were compared with.
    pub against: u64,
    /// The known ledger keys, oldest first; empty without a key.
    pub keys: Vec<KeyReport>,
    /// The incarnations, by shard and age.
    pub incarnations: Vec<IncarnationReport>,
    /// Findings that belong to no incarnation: missing logs that a held checkpoint names, and statements about keys.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Adds findings that belong to no incarnation.
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
    /// The key as vkey text.
    pub vkey: String,
    /// The last moment at which the key may start a log, in unix microseconds; absent for the
    /// newest key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

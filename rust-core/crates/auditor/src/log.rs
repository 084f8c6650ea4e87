//! The auditor's state of one log.

use crate::erasures::{ErasureFileState, ReportedErasures};
use crate::log_facts::LogFacts;
use crate::log_tail::{LogPosition, LogTail};
use proofgate_evidence::Ulid;
use proofgate_ledger::{Checkpoint, Hash};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A head that the auditor accepted, because it is signed and the records lead to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedHead {
    /// Number of records.
    pub size: u64,
    /// Root over these records.
    #[serde(with = "crate::hash_encoding::hash")]
    pub root: Hash,
    /// The signed note, with only the signature line of the ledger's key.
    pub note: String,
    /// Time at which the head was accepted, in unix microseconds.
    pub at: u64,
}

/// The newest statement of the aggregate log about a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AggregatedLog {
    /// Index in the aggregate log of the newest entry about this log.
    pub(crate) index: u64,
    /// The size that the entry states.
    pub(crate) size: u64,
    /// Whether the entry states that the log has ended.
    pub(crate) end: bool,
    /// Whether the entry states that the log was removed.
    #[serde(default)]
    pub(crate) removed: bool,
}

/// The logs of one shard, by age.
pub(crate) type Logs = BTreeMap<Ulid, Log>;

/// All logs, by shard and age.
pub(crate) type Catalogue = BTreeMap<String, Logs>;

/// A row of the catalogue, which stores the auditor's state of a log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LogRow {
    pub(crate) shard: String,
    pub(crate) incarnation: Ulid,
    pub(crate) head: Option<AcceptedHead>,
    /// Number of records under the log's own newest checkpoint. A successor may have signed a
    /// checkpoint over more records.
    pub(crate) own: u64,
    /// The position after the last record of the head. It has no peaks once the log has ended.
    pub(crate) point: LogPosition,
    pub(crate) facts: LogFacts,
    /// Whether the log is sealed, or a successor has recorded its end.
    pub(crate) ended: bool,
    /// Logs for which this log's statements were compared with the accepted facts.
    pub(crate) agreed: Vec<Ulid>,
    pub(crate) told: Option<AggregatedLog>,
    /// The accepted tombstone of a log that the retention job removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) removed: Option<String>,
    /// The reported erasures of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) erasures: Option<ReportedErasures>,
}

/// A signed head that the read records have not reached yet.
#[derive(Clone, Debug)]
pub(crate) struct TargetCheckpoint {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) note: String,
    /// Time at which the checkpoint was first seen, in unix microseconds.
    pub(crate) first_seen: u64,
    /// Whether the checkpoint is the log's own and not a successor's note.
    pub(crate) is_own: bool,
}

/// A log, as the auditor follows it.
pub(crate) struct Log {
    pub(crate) row: LogRow,
    pub(crate) dir: PathBuf,
    pub(crate) origin: String,
    /// Whether the row differs from the stored row.
    pub(crate) dirty: bool,
    pub(crate) target: Option<TargetCheckpoint>,
    /// The reader that reads towards the target.
    pub(crate) tail: Option<LogTail>,
    /// Time at which the log is read again after two failures, in unix microseconds.
    pub(crate) retry_at: u64,
    /// Time since when records wait for a checkpoint, in unix microseconds.
    pub(crate) waiting_since: Option<u64>,
    /// Time until which the log is skipped if there are newer logs, because it is unsigned and its
    /// checkpoint was refused.
    pub(crate) skip_until: u64,
    /// Whether the log was checked and the check found no way to a head.
    pub(crate) checked: bool,
    /// State of the log's erasures file at the last read.
    pub(crate) erasures: ErasureFileState,
}

impl Log {
    pub(crate) fn new(row: LogRow, dir: PathBuf, ledger: &str) -> Self {
        Self {
            origin: format!("{ledger}/{}/{}", row.shard, row.incarnation),
            row,
            dir,
            dirty: false,
            target: None,
            tail: None,
            retry_at: 0,
            waiting_since: None,
            skip_until: 0,
            checked: false,
            erasures: ErasureFileState::default(),
        }
    }

    pub(crate) fn from_listing(shard: &str, incarnation: Ulid, dir: PathBuf, ledger: &str) -> Self {
        let row = LogRow {
            shard: shard.to_owned(),
            incarnation,
            head: None,
            own: 0,
            point: LogPosition::default(),
            facts: LogFacts::default(),
            ended: false,
            agreed: Vec::new(),
            told: None,
            removed: None,
            erasures: None,
        };
        Self::new(row, dir, ledger)
    }

    /// Returns the name of the log's row in the state.
    pub(crate) fn row_file(&self) -> String {
        format!("logs/{}/{}", self.row.shard, self.row.incarnation)
    }

    /// Sets a new target, and clears the pause of the previous one.
    pub(crate) fn set_target(&mut self, target: TargetCheckpoint) {
        self.retry_at = 0;
        self.target = Some(target);
    }

    /// Returns whether no signed head of the log is known.
    pub(crate) fn is_unsigned(&self) -> bool {
        self.row.head.is_none() && self.target.is_none()
    }

    /// Returns the log's order among the logs that are due: signed logs first, then by the end of
    /// their pause.
    pub(crate) fn priority(&self) -> (bool, u64) {
        match self.is_unsigned() {
            true => (true, self.retry_at.max(self.skip_until)),
            false => (false, 0),
        }
    }

    /// Returns whether the log has no head yet but may get one.
    pub(crate) fn is_first_head_pending(&self) -> bool {
        self.row.head.is_none() && (self.target.is_some() || !self.checked)
    }

    /// Returns the number of records under the accepted head; 0 without a head.
    pub(crate) fn size(&self) -> u64 {
        self.row.head.as_ref().map_or(0, |head| head.size)
    }

    /// Returns the largest size known to be signed by the log itself.
    pub(crate) fn max_signed_size(&self) -> u64 {
        let target = self.target.as_ref().filter(|target| target.is_own);
        target.map_or(self.row.own, |target| target.checkpoint.size.max(self.row.own))
    }

    /// Accepts the target as the head.
    pub(crate) fn accept_target(&mut self, now: u64) {
        let (Some(target), Some(tail)) = (self.target.take(), self.tail.take()) else {
            return;
        };
        self.row.point = tail.position().unwrap_or_default();
        self.row.facts = tail.facts;
        if target.is_own {
            self.row.own = target.checkpoint.size;
        }
        self.row.head = Some(AcceptedHead {
            size: target.checkpoint.size,
            root: target.checkpoint.root,
            note: target.note,
            at: now,
        });
        self.row.ended |= self.row.facts.sealed;
        self.waiting_since = None;
        self.dirty = true;
    }

    /// Limits all times to `now`, so that no wait or pause lasts longer than intended. Otherwise
    /// every query for new heads would return a head with a future time.
    pub(crate) fn clamp_times(&mut self, now: u64) {
        if let Some(head) = self.row.head.as_mut().filter(|head| head.at > now) {
            head.at = now;
            self.dirty = true;
        }
        if let Some(target) = &mut self.target {
            target.first_seen = now.min(target.first_seen);
        }
        self.waiting_since = self.waiting_since.map(|since| now.min(since));
        self.retry_at = now.min(self.retry_at);
        self.skip_until = now.min(self.skip_until);
    }

    /// Adds the configurations that the log's accepted records name. A row of an older version has
    /// no configurations.
    pub(crate) fn add_configurations(&mut self, read: &LogFacts) {
        let known = &mut self.row.facts.configurations;
        if known.len() < read.configurations.len() {
            known.clone_from(&read.configurations);
            self.dirty = true;
        }
    }

    /// Clears the state that only a running log needs.
    pub(crate) fn clear_running_state(&mut self) {
        if !self.row.ended || !self.row.point.peaks.is_empty() {
            self.row.ended = true;
            self.row.point.peaks = Vec::new();
            self.dirty = true;
        }
        self.waiting_since = None;
    }
}

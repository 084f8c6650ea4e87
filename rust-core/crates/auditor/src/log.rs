//! One log as the auditor knows it.

use crate::erasures::{ErasureFileState, ReportedErasures};
use crate::facts::LogFacts;
use crate::tail::{LogPosition, LogTail};
use proofgate_evidence::Ulid;
use proofgate_ledger::{Checkpoint, Hash};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A head that was accepted: signed, and reached by the records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedHead {
    /// Records.
    pub size: u64,
    /// Their root.
    #[serde(with = "crate::text::hash")]
    pub root: Hash,
    /// The signed note, with the line of the ledger's key alone.
    pub note: String,
    /// When it was accepted, in unix microseconds.
    pub at: u64,
}

/// What the aggregate log holds of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AggregatedLog {
    /// Number of the newest entry.
    pub(crate) index: u64,
    /// The size in it.
    pub(crate) size: u64,
    /// Whether it says that the log has ended.
    pub(crate) end: bool,
    /// Whether it says that the log was removed.
    #[serde(default)]
    pub(crate) removed: bool,
}

/// The logs of one shard by age.
pub(crate) type Logs = BTreeMap<Ulid, Log>;

/// All logs, by shard and age.
pub(crate) type Catalogue = BTreeMap<String, Logs>;

/// What is kept of a log in the auditor's state: a row of its catalogue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LogRow {
    pub(crate) shard: String,
    pub(crate) incarnation: Ulid,
    pub(crate) head: Option<AcceptedHead>,
    /// Records under the log's own newest checkpoint; a successor may have signed for more.
    pub(crate) own: u64,
    /// Where the head ends. Without peaks once the log has ended.
    pub(crate) point: LogPosition,
    pub(crate) facts: LogFacts,
    /// It is sealed, or a successor has recorded its end.
    pub(crate) ended: bool,
    /// Logs of which what this one says was compared with what they are.
    pub(crate) agreed: Vec<Ulid>,
    pub(crate) told: Option<AggregatedLog>,
    /// The tombstone of a log that was removed by right, as it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) removed: Option<String>,
    /// What was told of its erasures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) erasures: Option<ReportedErasures>,
}

/// A signed head that is to be reached.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) signed: Checkpoint,
    pub(crate) note: String,
    /// When it was first seen, in unix microseconds.
    pub(crate) first_seen: u64,
    /// It is the log's own, not a successor's.
    pub(crate) own: bool,
}

/// A log.
pub(crate) struct Log {
    pub(crate) row: LogRow,
    pub(crate) dir: PathBuf,
    pub(crate) origin: String,
    /// The row differs from what is stored.
    pub(crate) dirty: bool,
    pub(crate) target: Option<Target>,
    /// The reading towards the target.
    pub(crate) tail: Option<LogTail>,
    /// It failed twice: until when it is left alone, in unix microseconds.
    pub(crate) retry_at: u64,
    /// Since when records wait for a checkpoint.
    pub(crate) waiting_since: Option<u64>,
    /// Its checkpoint was found to be refused, and nobody signed it: until when it is passed over where there are newer ones.
    pub(crate) skip_until: u64,
    /// It was looked at, and nothing was there that leads to a head.
    pub(crate) checked: bool,
    /// Its erasures as they were read last.
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

    /// Name of its row in the state.
    pub(crate) fn row_file(&self) -> String {
        format!("logs/{}/{}", self.row.shard, self.row.incarnation)
    }

    /// Goes for a head, whatever was wrong with the one before.
    pub(crate) fn set_target(&mut self, target: Target) {
        self.retry_at = 0;
        self.target = Some(target);
    }

    /// Whether nothing of it is known to be signed.
    pub(crate) fn is_unsigned(&self) -> bool {
        self.row.head.is_none() && self.target.is_none()
    }

    /// When it comes among the logs that are due: one that is signed first, of the others those whose rest ended first.
    pub(crate) fn priority(&self) -> (bool, u64) {
        match self.is_unsigned() {
            true => (true, self.retry_at.max(self.skip_until)),
            false => (false, 0),
        }
    }

    /// Whether it has no head so far, and may get one from what is there.
    pub(crate) fn is_unread(&self) -> bool {
        self.row.head.is_none() && (self.target.is_some() || !self.checked)
    }

    /// Records of the head that was accepted last.
    pub(crate) fn size(&self) -> u64 {
        self.row.head.as_ref().map_or(0, |head| head.size)
    }

    /// The largest size that was signed, as far as was seen.
    pub(crate) fn max_signed_size(&self) -> u64 {
        let target = self.target.as_ref().filter(|target| target.own);
        target.map_or(self.row.own, |target| target.signed.size.max(self.row.own))
    }

    /// Takes the target as the head.
    pub(crate) fn accept_target(&mut self, now: u64) {
        let (Some(target), Some(tail)) = (self.target.take(), self.tail.take()) else {
            return;
        };
        self.row.point = tail.position().unwrap_or_default();
        self.row.facts = tail.facts;
        if target.own {
            self.row.own = target.signed.size;
        }
        self.row.head = Some(AcceptedHead {
            size: target.signed.size,
            root: target.signed.root,
            note: target.note,
            at: now,
        });
        self.row.ended |= self.row.facts.sealed;
        self.waiting_since = None;
        self.dirty = true;
    }

    /// Nothing that is waited for began behind `now`, no rest lasts longer, and no head was accepted later: who asks for what
    /// is new would be told it for ever.
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

    /// Takes the configurations that its accepted records name: a row of a former version tells none.
    pub(crate) fn add_configurations(&mut self, read: &LogFacts) {
        let known = &mut self.row.facts.configurations;
        if known.len() < read.configurations.len() {
            known.clone_from(&read.configurations);
            self.dirty = true;
        }
    }

    /// Forgets what only a log that goes on needs.
    pub(crate) fn clear_running_state(&mut self) {
        if !self.row.ended || !self.row.point.peaks.is_empty() {
            self.row.ended = true;
            self.row.point.peaks = Vec::new();
            self.dirty = true;
        }
        self.waiting_since = None;
    }
}

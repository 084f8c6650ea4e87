//! Results of recovery: the logs of a shard and their unfinished exchanges.

use proofgate_ledger::Hash;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use ulid::Ulid;

/// An exchange that was admitted and has not ended in any log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedExchange {
    /// The incarnation that admitted it.
    pub incarnation: Ulid,
    /// Number of its admission record in that incarnation.
    pub admission: u64,
    /// When it was admitted, in unix microseconds.
    pub ts: u64,
    /// Request id.
    pub id: String,
    /// Tenant.
    pub tenant: String,
    /// API key or subject, as in the admission record.
    pub key: String,
    /// Tokens reserved for it in its tenant's limits; `None` when the tenant has none.
    pub reserved: Option<u64>,
    /// Nanodollars reserved for it in its tenant's budgets; `None` when it counts in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_nanodollars: Option<u64>,
    /// The plan whose limits the tenants of its namespace share; `None` when it counts in no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_plan: Option<String>,
    /// Requested model; empty if an earlier version wrote the entry.
    #[serde(default)]
    pub model: String,
}

/// The end of a log that was cut short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The segment.
    pub path: PathBuf,
    /// First byte that is not part of the log.
    pub offset: u64,
    /// Why the log ends here.
    pub reason: String,
}

/// A log as its last writer left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviousLog {
    /// The incarnation.
    pub incarnation: Ulid,
    /// Its directory.
    pub dir: PathBuf,
    /// Its number of records.
    pub size: u64,
    /// Its root at that size.
    pub root: Hash,
    /// Whether its last record is a seal.
    pub sealed: bool,
    /// Records that its checkpoint covers.
    pub checkpointed: u64,
    /// Where the log was cut, if its tail was torn.
    pub torn: Option<TornTail>,
    /// Records that were written and are lost, as far as the tree shows.
    pub lost_records: u64,
}

/// A log that another log names but that is not there: moved away, or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingLog {
    /// The missing incarnation.
    pub incarnation: Ulid,
    /// The log whose `open` names it as its predecessor.
    pub named_by: Ulid,
}

/// Result of inspecting a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryResult {
    /// The newest log that served.
    pub newest: PreviousLog,
    /// Logs that `newest` continues and whose end it did not record, newest first.
    pub logs_with_unrecorded_end: Vec<PreviousLog>,
    /// Exchanges to close with `aborted` records, oldest first.
    pub unfinished_exchanges: Vec<UnfinishedExchange>,
    /// Records that had to be read.
    pub records_read: u64,
    /// The predecessor of the oldest log that was read, if it is missing.
    pub missing: Option<MissingLog>,
}

impl RecoveryResult {
    /// Returns the number of records lost with a power failure: the tree has them, the logs do not.
    #[must_use]
    pub fn lost_records(&self) -> u64 {
        let lost = self.logs_with_unrecorded_end.iter().map(|left| left.lost_records);
        lost.fold(self.newest.lost_records, u64::saturating_add)
    }
}

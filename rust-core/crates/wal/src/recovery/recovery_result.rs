//! Results of recovery: the logs of a shard and their unfinished exchanges.

use proofgate_ledger::Hash;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use ulid::Ulid;

/// An exchange that was admitted and has not ended in any log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedExchange {
    /// The incarnation that admitted the exchange.
    pub incarnation: Ulid,
    /// Number of the admission record in that incarnation.
    pub admission: u64,
    /// Time of the admission, in unix microseconds.
    pub ts: u64,
    /// Request id.
    pub id: String,
    /// Tenant.
    pub tenant: String,
    /// API key or subject, as in the admission record.
    pub key: String,
    /// Tokens reserved in the tenant's limits; `None` when the tenant has no such limits.
    pub reserved: Option<u64>,
    /// Nanodollars reserved in the tenant's budgets; `None` when the exchange counts in no budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_nanodollars: Option<u64>,
    /// The plan whose limits the tenants of the namespace share; `None` when the exchange counts in
    /// no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_plan: Option<String>,
    /// Requested model; empty if an earlier version wrote the entry.
    #[serde(default)]
    pub model: String,
}

/// The end of a log whose last records are incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// Path of the segment.
    pub path: PathBuf,
    /// First byte that is not part of the log.
    pub offset: u64,
    /// Reason why the log ends at this offset.
    pub reason: String,
}

/// The state in which the last writer of a log left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviousLog {
    /// The incarnation.
    pub incarnation: Ulid,
    /// Directory of the log.
    pub dir: PathBuf,
    /// Number of records in the log.
    pub size: u64,
    /// Root of the log at that size.
    pub root: Hash,
    /// Whether the last record is a seal.
    pub sealed: bool,
    /// Number of records that the checkpoint covers.
    pub checkpointed: u64,
    /// End of the valid log, if its tail was torn.
    pub torn: Option<TornTail>,
    /// Number of lost records, as far as the tree shows.
    pub lost_records: u64,
}

/// A log that another log names but that was moved or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingLog {
    /// The missing incarnation.
    pub incarnation: Ulid,
    /// The log whose `open` names it as its predecessor.
    pub named_by: Ulid,
}

/// The result of inspecting a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryResult {
    /// The newest log that served.
    pub newest: PreviousLog,
    /// Logs that `newest` continues and whose end `newest` did not record, newest first.
    pub logs_with_unrecorded_end: Vec<PreviousLog>,
    /// Exchanges to close with `aborted` records, oldest first.
    pub unfinished_exchanges: Vec<UnfinishedExchange>,
    /// Number of records that were read.
    pub records_read: u64,
    /// The predecessor of the oldest log that was read, if it is missing.
    pub missing: Option<MissingLog>,
}

impl RecoveryResult {
    /// Returns the number of records that a power failure lost: the tree contains them, but the
    /// logs do not.
    #[must_use]
    pub fn lost_records(&self) -> u64 {
        let lost = self.logs_with_unrecorded_end.iter().map(|left| left.lost_records);
        lost.fold(self.newest.lost_records, u64::saturating_add)
    }
}

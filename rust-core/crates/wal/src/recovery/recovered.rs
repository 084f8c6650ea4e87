//! What recovery finds of the logs of a shard.

use proofgate_ledger::Hash;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use ulid::Ulid;

/// An exchange that was admitted and has no end in any log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedExchange {
    /// The incarnation that admitted it.
    pub incarnation: Ulid,
    /// Number of its admission record there.
    pub admission: u64,
    /// When it was admitted, in unix microseconds.
    pub ts: u64,
    /// Request id.
    pub id: String,
    /// Tenant.
    pub tenant: String,
    /// Its key or subject, as in the admission record.
    pub key: String,
    /// Tokens set aside for it in its tenant's limits; `None` when the tenant has none.
    pub reserved: Option<u64>,
    /// Nanodollars set aside for it in its tenant's budgets; `None` when it counts in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_nanodollars: Option<u64>,
    /// The plan whose limits the tenants of its namespace share; `None` when it counts in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_plan: Option<String>,
    /// Model asked for; empty where a version before this one noted the exchange.
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
    /// What is there.
    pub reason: String,
}

/// A log as its last writer left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviousLog {
    /// Which one.
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
    /// Where it was cut, if it was.
    pub torn: Option<TornTail>,
    /// Records that were written and are gone, as far as the tree remembers them.
    pub lost: u64,
}

/// A log that is named and not there: moved away, or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingLog {
    /// Which one.
    pub incarnation: Ulid,
    /// The log whose `open` names it as its predecessor.
    pub named_by: Ulid,
}

/// What recovery found on a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryResult {
    /// The newest log that served.
    pub newest: PreviousLog,
    /// Logs that it continues and whose end it did not live to record, newest first.
    pub unreported: Vec<PreviousLog>,
    /// Exchanges to close with `aborted` records, oldest first.
    pub unfinished_exchanges: Vec<UnfinishedExchange>,
    /// Records that had to be read.
    pub records_read: u64,
    /// The log before the oldest of those that were read, if it is not there.
    pub missing: Option<MissingLog>,
}

impl RecoveryResult {
    /// Records that were written and are gone with the power: the tree knows of them, the logs do not hold them.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let lost = self.unreported.iter().map(|left| left.lost);
        lost.fold(self.newest.lost, u64::saturating_add)
    }
}

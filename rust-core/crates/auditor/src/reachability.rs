//! Reachability of the workers of ledgers whose workers each serve their own shard. While a worker
//! does not answer, its shard cannot be checked.

use crate::finding::{FindingCode, RaisedFindings};
use crate::log::Logs;
use proofgate_evidence::EvidenceError;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Maximum number of quick checks of ended logs in one poll. Each check costs a worker that serves
/// traffic a few requests.
pub(crate) const MAX_QUICK_CHECKS: usize = 32;

/// The reachability of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Reachability {
    /// Whether the worker answered when the poll began.
    pub answers: bool,
    /// The reason why the worker cannot be read, after this state has lasted long enough to be
    /// reported; otherwise `None`.
    pub failing: Option<String>,
}

/// The workers that each serve a shard, by the shard's name. The worker of a shard without an entry
/// was removed by scaling down.
pub type Workers = BTreeMap<String, Reachability>;

/// The state of a shard's worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    /// The worker answers.
    Answers,
    /// The worker does not answer, although it should.
    Silent,
    /// The worker no longer exists. The logs that it served cannot be verified again.
    Gone,
}

/// Returns the state of a shard's worker.
pub(crate) fn worker_state(workers: &Workers, shard: &str) -> WorkerState {
    match workers.get(shard) {
        Some(Reachability { answers: true, .. }) => WorkerState::Answers,
        Some(_) => WorkerState::Silent,
        None => WorkerState::Gone,
    }
}

/// Raises findings about the workers, and returns the shards that cannot be checked now.
pub(crate) fn check_workers(
    workers: &Workers,
    catalogue: &BTreeMap<String, Logs>,
    ledger: &str,
    raised: &mut RaisedFindings,
) -> BTreeSet<String> {
    for (shard, reach) in workers {
        let origin = format!("{ledger}/{shard}");
        if let Some(why) = &reach.failing {
            raised.raise_confirmed(FindingCode::WorkerUnreachable, &origin, shard, why.clone());
        } else if !reach.answers {
            raised.mark_inconclusive(&origin);
        }
    }
    let shards = catalogue.keys().chain(workers.keys());
    let away: BTreeSet<String> = shards
        .filter(|shard| worker_state(workers, shard) != WorkerState::Answers)
        .cloned()
        .collect();
    for (shard, logs) in catalogue.iter().filter(|(shard, _)| away.contains(*shard)) {
        for log in logs.values() {
            raised.mark_inconclusive(&log.origin);
        }
        if worker_state(workers, shard) == WorkerState::Gone && !is_sealed(logs) {
            let message =
                "its worker no longer exists, and it is unknown whether its last log was sealed".to_owned();
            raised.raise(
                FindingCode::WorkerUnreachable,
                &format!("{ledger}/{shard}"),
                shard,
                message,
            );
        }
    }
    away
}

/// Returns whether a shard is complete: all of its logs have ended, and the newest log has a seal
/// that names no successor.
fn is_sealed(logs: &Logs) -> bool {
    let mut accepted = logs.values().filter(|log| log.row.head.is_some());
    let newest = accepted.clone().next_back();
    newest.is_none_or(|log| log.row.facts.sealed && log.row.facts.successor.is_none())
        && accepted.all(|log| log.row.ended)
}

/// Returns whether a worker stopped answering while it was read. The next poll reports it.
pub(crate) fn is_unreachable(error: &EvidenceError) -> bool {
    matches!(error, EvidenceError::Io { source, .. } if source.kind() == io::ErrorKind::HostUnreachable)
}

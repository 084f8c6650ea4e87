//! Ledgers whose workers each serve their own shard: what can be judged while one of them does not answer.

use crate::finding::{FindingCode, RaisedFindings};
use crate::log::Logs;
use proofgate_evidence::EvidenceError;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Number of ended logs that get a quick check in one poll: each costs a worker that serves traffic a few requests.
pub(crate) const MAX_QUICK_CHECKS: usize = 32;

/// Whether a worker can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Reachability {
    /// Whether it answered when the poll began.
    pub answers: bool,
    /// Why it cannot be read, once that has lasted long enough to report.
    pub failing: Option<String>,
}

/// The workers that each serve a shard, by the shard's name. A shard without one has been scaled away.
pub type Workers = BTreeMap<String, Reachability>;

/// The state of a shard's worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    /// It answers.
    Answers,
    /// It does not answer although it should.
    Silent,
    /// It no longer exists: what it served cannot be verified again.
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

/// Raises findings about the workers, and returns the shards that cannot be judged now.
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

/// Returns whether a shard is complete: all of its logs have ended, the newest with a seal that names no successor.
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

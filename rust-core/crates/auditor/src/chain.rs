//! Compares the accepted parts of a shard's logs with each other.

use crate::finding::{FindingCode, RaisedFindings};
use crate::log::{Log, Logs};
use crate::log_facts::LogReference;
use crate::reachability::is_unreachable;
use proofgate_evidence::{EvidenceError, ReadStorage, Ulid, prove_consistency};
use proofgate_ledger::Checkpoint;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The logs that name a given log in an `open` or a `takeover`.
#[derive(Debug, Default)]
pub(crate) struct Successors {
    /// Directories of these logs, which hold the notes that cover the end of the given log.
    pub(crate) dirs: Vec<PathBuf>,
    /// Whether one of these logs has served. The given log then has ended.
    pub(crate) served: bool,
}

/// Raises the clock steps that running logs record, and the clock steps of logs whose successor is
/// running, because a new log is started after a wrong clock.
pub(crate) fn raise_clock_steps(logs: &Logs, raised: &mut RaisedFindings) {
    let goes_on = |log: &Log| !log.row.ended;
    let is_followed = |log: &Log| {
        let next = log.row.facts.successor.and_then(|next| logs.get(&next));
        next.is_some_and(goes_on)
    };
    for log in logs.values().filter(|log| goes_on(log) || is_followed(log)) {
        let Some(step) = log.row.facts.step else { continue };
        let direction = if step.is_backward() { "back" } else { "ahead" };
        let message = format!(
            "record {} says that its worker's clock was set {direction} by {} seconds: the record times jump at this record, so use the record numbers to order the records",
            step.seq,
            step.seconds()
        );
        raised.raise(FindingCode::ClockStep, &log.origin, &log.row.shard, message);
    }
}

/// The graph of successions in a shard: for each log, the logs that name it.
#[derive(Debug, Default)]
pub(crate) struct SuccessionGraph(BTreeMap<Ulid, BTreeSet<Ulid>>);

impl SuccessionGraph {
    pub(crate) fn from_logs(logs: &Logs) -> Self {
        let mut all = Self::default();
        logs.values().for_each(|log| all.add(log));
        all
    }

    /// Adds the logs that a log names.
    pub(crate) fn add(&mut self, log: &Log) {
        let facts = &log.row.facts;
        for named in facts.predecessor.iter().chain(&facts.takeovers) {
            let by = self.0.entry(named.incarnation).or_default();
            by.insert(log.row.incarnation);
        }
    }

    /// Returns the later logs that name `incarnation`.
    pub(crate) fn successors_of(&self, logs: &Logs, incarnation: Ulid) -> Successors {
        let mut found = Successors::default();
        let by = self.0.get(&incarnation).into_iter();
        for by in by.flat_map(|by| by.range(incarnation..)) {
            if let Some(log) = logs.get(by) {
                found.dirs.push(log.dir.clone());
                found.served |= log.row.facts.served;
            }
        }
        found
    }
}

/// Compares the logs of a shard. `there` holds the listed incarnations.
pub(crate) fn check_chain(
    storage: &dyn ReadStorage,
    logs: &mut Logs,
    there: &BTreeSet<Ulid>,
    raised: &mut RaisedFindings,
) {
    check_forks(logs, raised);
    check_links(logs, there, raised);
    let pairs: Vec<(Ulid, LogReference, bool)> = logs
        .values()
        .filter(|log| log.row.head.is_some())
        .flat_map(|log| {
            let facts = &log.row.facts;
            let running = facts.predecessor.iter().filter(|named| named.running);
            let said = running.chain(facts.stated_ends());
            said.map(|named| {
                (
                    log.row.incarnation,
                    *named,
                    log.row.agreed.contains(&named.incarnation),
                )
            })
        })
        .collect();
    for (by, named, agreed) in pairs {
        check_agreement(storage, logs, by, &named, agreed, raised);
    }
}

/// Raises forks: two logs that served and name one predecessor, or several logs without a
/// predecessor.
fn check_forks(logs: &Logs, raised: &mut RaisedFindings) {
    let mut next: BTreeMap<Option<Ulid>, Vec<&Log>> = BTreeMap::new();
    for log in logs.values().filter(|log| log.row.facts.served) {
        let before = log.row.facts.predecessor.map(|named| named.incarnation);
        next.entry(before).or_default().push(log);
    }
    for (before, by) in next.iter().filter(|(_, by)| by.len() > 1) {
        match before {
            Some(before) => {
                let names: Vec<String> = by.iter().map(|log| log.row.incarnation.to_string()).collect();
                let first = by[0];
                let below = first.origin.strip_suffix(&first.row.incarnation.to_string());
                let origin = format!("{}{before}", below.unwrap_or_default());
                let message = format!("{} name this log as their predecessor", names.join(" and "));
                raised.raise(FindingCode::Fork, &origin, &first.row.shard, message);
            }
            None => {
                for log in &by[1..] {
                    let message = format!(
                        "it names no predecessor, although {} is already the first log of the shard",
                        by[0].row.incarnation
                    );
                    raised.raise(FindingCode::BrokenChain, &log.origin, &log.row.shard, message);
                }
            }
        }
    }
}

/// Raises logs that are named but missing, and logs that no later log names.
fn check_links(logs: &Logs, there: &BTreeSet<Ulid>, raised: &mut RaisedFindings) {
    let newest = logs
        .values()
        .filter(|log| log.row.facts.served)
        .map(|log| log.row.incarnation)
        .max();
    let named: BTreeSet<Ulid> = logs
        .values()
        .filter_map(|log| Some(log.row.facts.predecessor?.incarnation))
        .collect();
    let unread = logs.values().any(Log::is_first_head_pending);
    for log in logs.values().filter(|log| log.row.head.is_some()) {
        let facts = &log.row.facts;
        let mut raise = |code, message| raised.raise(code, &log.origin, &log.row.shard, message);
        if let Some(before) = facts.predecessor.map(|named| named.incarnation)
            && !logs.contains_key(&before)
            && !there.contains(&before)
        {
            let message = format!(
                "its predecessor {before} is missing, and was already missing when the auditor first checked"
            );
            raise(FindingCode::PredecessorMissing, message);
        }
        if let Some(successor) = facts.successor {
            let names_another = logs
                .get(&successor)
                .filter(|log| log.row.head.is_some())
                .is_some_and(|next| {
                    next.row.facts.predecessor.map(|named| named.incarnation) != Some(log.row.incarnation)
                });
            if names_another {
                raise(
                    FindingCode::BrokenChain,
                    format!(
                        "its seal names {successor} as its successor, but that log names another predecessor"
                    ),
                );
            } else if !there.contains(&successor) && !logs.contains_key(&successor) {
                raise(
                    FindingCode::LogMissing,
                    format!("its seal names {successor} as its successor, but that log is missing"),
                );
            }
        }
        let orphan = facts.served && !named.contains(&log.row.incarnation);
        if orphan && !unread && newest.is_some_and(|newest| log.row.incarnation < newest) {
            raise(
                FindingCode::NoSuccessor,
                "no later log names this log as its predecessor".to_owned(),
            );
        }
    }
}

/// Compares the statements of log `by` about another log with the accepted state of that log.
fn check_agreement(
    storage: &dyn ReadStorage,
    logs: &mut Logs,
    source: Ulid,
    reference: &LogReference,
    agreed: bool,
    raised: &mut RaisedFindings,
) {
    let Some(log) = logs.get(&reference.incarnation) else {
        return;
    };
    let Some(head) = &log.row.head else { return };
    let (origin, shard) = (log.origin.clone(), log.row.shard.clone());
    let same = match reference.size.cmp(&head.size) {
        std::cmp::Ordering::Equal => Ok(reference.root == head.root),
        std::cmp::Ordering::Greater if log.target.is_some() => return,
        std::cmp::Ordering::Greater => {
            let message = format!(
                "{source} says that this log has {} records, but only {} are signed and present",
                reference.size, head.size
            );
            return raised.raise(FindingCode::Truncated, &origin, &shard, message);
        }
        std::cmp::Ordering::Less if !reference.running && !log.row.ended => {
            let message = format!(
                "{source} recorded the end of this log with {} records, but a checkpoint covers {}",
                reference.size, head.size
            );
            return raised.raise(FindingCode::TwoWriters, &origin, &shard, message);
        }
        std::cmp::Ordering::Less if agreed || reference.size == 0 => return,
        std::cmp::Ordering::Less => {
            let signed = |size, root| Checkpoint {
                origin: origin.clone(),
                size,
                root,
            };
            let (old, new) = (
                signed(reference.size, reference.root),
                signed(head.size, head.root),
            );
            let dir = log.dir.parent().unwrap_or(&log.dir);
            match prove_consistency(storage, dir, &old, &new) {
                Ok(_) => Ok(true),
                Err(EvidenceError::Inconsistent(_) | EvidenceError::Corruption { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        }
    };
    match same {
        Ok(false) => {
            let message = format!(
                "{source} recorded an end of this log that does not match the log's first {} records",
                reference.size
            );
            raised.raise(FindingCode::BrokenChain, &origin, &shard, message);
        }
        Ok(true) if !agreed => {
            if let Some(log) = logs.get_mut(&source) {
                log.row.agreed.push(reference.incarnation);
                log.dirty = true;
            }
        }
        Ok(true) => {}
        Err(error) if is_unreachable(&error) => {}
        Err(error) => raised.raise(FindingCode::Unreadable, &origin, &shard, error.to_string()),
    }
}

/// Marks the logs that have ended: sealed logs, and logs whose current end a successor recorded.
pub(crate) fn mark_ended(logs: &mut Logs) {
    let ends: Vec<LogReference> = logs
        .values()
        .filter(|log| log.row.head.is_some())
        .flat_map(|log| log.row.facts.stated_ends().copied())
        .collect();
    let recorded: BTreeSet<Ulid> = ends
        .iter()
        .filter(|end| {
            let head = logs.get(&end.incarnation).and_then(|log| log.row.head.as_ref());
            head.is_some_and(|head| (head.size, head.root) == (end.size, end.root))
        })
        .map(|end| end.incarnation)
        .collect();
    for log in logs
        .values_mut()
        .filter(|log| log.row.head.is_some() && log.target.is_none())
    {
        if log.row.ended || recorded.contains(&log.row.incarnation) {
            log.clear_running_state();
        }
    }
}

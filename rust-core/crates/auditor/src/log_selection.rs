//! Selects the logs on a volume that are checked: all accepted logs, and a limited number of other
//! logs, because anyone who can write to the volume can create any number of directories. The limit
//! is the largest number of logs in a ledger that is read for the first time.

use crate::finding::{FindingCode, RaisedFindings};
use crate::log::{Catalogue, Log};
use proofgate_evidence::Ulid;
use proofgate_evidence::layout::Shard;
use std::collections::{BTreeMap, BTreeSet};

/// Most shards without an accepted log.
const MAX_UNACCEPTED_SHARDS: usize = 1024;
/// Most logs without an accepted head, of all shards together.
const MAX_UNACCEPTED_LOGS: usize = 32_768;

/// The listed logs by shard.
pub(crate) type ListedLogs = BTreeMap<String, BTreeSet<Ulid>>;

/// Adds new logs of the listed shards to the catalogue and reports missing logs. Shards in `away`
/// are not checked.
pub(crate) fn update_catalogue(
    shards: Vec<Shard>,
    catalogue: &mut Catalogue,
    ledger: &str,
    away: &BTreeSet<String>,
    raised: &mut RaisedFindings,
) -> ListedLogs {
    let there = update_shard(shards, catalogue, ledger, away, raised);
    for (shard, logs) in catalogue.iter().filter(|(shard, _)| !away.contains(*shard)) {
        let Some(there) = there.get(shard) else {
            let message = format!("all of its {} logs are missing", logs.len());
            raised.raise(
                FindingCode::ShardMissing,
                &format!("{ledger}/{shard}"),
                shard,
                message,
            );
            continue;
        };
        for log in logs.values().filter(|log| !there.contains(&log.row.incarnation)) {
            let message = format!(
                "the log is missing, although {} of its records were signed",
                log.size()
            );
            raised.raise(FindingCode::LogMissing, &log.origin, shard, message);
        }
    }
    there
}

/// Adds new logs to the catalogue, and removes logs that were never accepted and are missing or
/// exceed the limits.
fn update_shard(
    mut shards: Vec<Shard>,
    catalogue: &mut Catalogue,
    ledger: &str,
    away: &BTreeSet<String>,
    raised: &mut RaisedFindings,
) -> ListedLogs {
    // The ledger's own shards have the smallest numbers.
    shards.sort_by_key(|shard| {
        let name = shard.name.as_deref().unwrap_or_default();
        let number = name.bytes().all(|digit| digit.is_ascii_digit());
        (!number, name.len(), name.to_owned())
    });
    let mut there = ListedLogs::new();
    let (mut new, mut left_out) = (Vec::new(), 0);
    let mut new_shards = 0;
    for shard in &shards {
        let Some(name) = shard.name.as_ref().filter(|name| !away.contains(*name)) else {
            continue;
        };
        let known = catalogue.get(name);
        let accepted = |incarnation: &Ulid| {
            known
                .and_then(|logs| logs.get(incarnation))
                .is_some_and(|log| log.row.head.is_some())
        };
        if !known.is_some_and(|logs| logs.values().any(|log| log.row.head.is_some())) {
            new_shards += 1;
            if new_shards > MAX_UNACCEPTED_SHARDS {
                left_out += shard.incarnations.len();
                continue;
            }
        }
        let unknown = shard.incarnations.iter().rev().filter(|log| !accepted(log));
        // Take the newest log of each shard first, because a worker's new log sorts after all
        // existing logs.
        new.extend(
            unknown
                .enumerate()
                .map(|(back, log)| (back, name, *log, &shard.dir)),
        );
        there.insert(name.clone(), shard.incarnations.iter().copied().collect());
    }
    new.sort_unstable_by_key(|(back, name, log, _)| (*back, *name, *log));
    left_out += new.len().saturating_sub(MAX_UNACCEPTED_LOGS);
    new.truncate(MAX_UNACCEPTED_LOGS);
    if left_out > 0 {
        let message = format!(
            "there are too many logs to check: {left_out} logs that were never accepted were not checked"
        );
        raised.raise(FindingCode::TooManyLogs, ledger, "", message);
    }
    let taken: BTreeSet<(&String, Ulid)> = new.iter().map(|(_, name, log, _)| (*name, *log)).collect();
    for (shard, logs) in catalogue.iter_mut().filter(|(shard, _)| !away.contains(*shard)) {
        // A log that was never accepted cannot be reported as missing.
        logs.retain(|incarnation, log| log.row.head.is_some() || taken.contains(&(shard, *incarnation)));
    }
    for (_, name, incarnation, dir) in &new {
        let logs = catalogue.entry((*name).clone()).or_default();
        logs.entry(*incarnation).or_insert_with(|| {
            Log::from_listing(name, *incarnation, dir.join(incarnation.to_string()), ledger)
        });
    }
    catalogue.retain(|shard, logs| !logs.is_empty() || away.contains(shard));
    there
}

//! Recovery: reads and verifies the logs of earlier incarnations on the shard.
//!
//! Recovery never changes data that a predecessor wrote. It syncs a log before reading it and asks
//! the system to drop the log from the page cache. If the system follows that advice, recovery
//! reads the data that is on the disk.
//!
//! **Logs that are read.** Recovery reads the newest log that ever served, from its resume point
//! or, without a resume point, from its start. It also reads the preceding log if the newest log
//! continues that log but did not record its end. A log serves only once its first checkpoint is on
//! the disk. A log without a checkpoint is therefore skipped if it holds only the records that a
//! start writes. If it holds more, it has been tampered with.
//!
//! **Missing logs.** Recovery only reports whether the predecessor of the oldest log that it reads
//! still exists. That log's `open` record names the predecessor, which an operator may have moved
//! legitimately.
//!
//! **Authenticity.** The volume is not trusted. Every frame that is read must carry the tag of a
//! holder of the signing key and match the signed checkpoint. Recovery never signs or continues any
//! other data.
//!
//! **Torn tail.** A bad record `s` marks the end of the log only if nothing proves that `s` was
//! durable: no checkpoint covers `s`, and no whole record after `s` states that `s` was synced when
//! that record was framed. Otherwise the log is corrupted, and recovery refuses it. (If any later
//! record proved corruption, recovery would refuse a legal crash that reorders one unsynced batch.)

mod key;
mod log;
mod recovery_result;
mod replay;
mod shard;

pub(crate) use self::key::log_key;
pub use self::recovery_result::{MissingLog, PreviousLog, RecoveryResult, TornTail, UnfinishedExchange};
pub use self::replay::{find_resume_point, replay, run_logs};
pub use self::shard::Shard;

use self::log::{Log, corruption, predecessor, read};
use self::shard::incarnations;
use crate::{Storage, WalError};
use proofgate_evidence::TreeFile;
use proofgate_evidence::log_reader::{LogItem, LogReader};
use proofgate_evidence::segment::SegmentName;
use proofgate_ledger::{Checkpoint, Hash, Mmr, consistency_proof, leaf_hash, verify_consistency};
use std::collections::BTreeMap;
use std::path::Path;
use ulid::Ulid;

/// Inspects a shard before the incarnation `own` starts on it; `None` when no log of the shard ever
/// served. Time and memory grow with the number of open exchanges and the records after the newest
/// `resume` file, not with the log.
///
/// `held` is a checkpoint, with verified signature, that was stored where no writer of the volume
/// could change it. The records on the volume must contain it.
///
/// # Errors
/// [`WalError::LedgerBehind`] when the volume holds fewer records than `held` covers, or different
/// records; [`EvidenceError::Corruption`](crate::EvidenceError::Corruption) when the stored log
/// contradicts data that is known to be durable, signed, or framed by a holder of the key;
/// [`EvidenceError::Ledger`](crate::EvidenceError::Ledger) when a checkpoint is not signed by the
/// key; [`EvidenceError::Io`](crate::EvidenceError::Io).
pub fn inspect(
    storage: &dyn Storage,
    shard: &Shard<'_>,
    own: Option<Ulid>,
    held: Option<&Checkpoint>,
) -> Result<Option<RecoveryResult>, WalError> {
    let incarnations = incarnations(storage, shard.dir, own)?;
    let mut newest = None;
    for incarnation in incarnations.iter().rev() {
        newest = read(storage, shard, *incarnation)?;
        if newest.is_some() {
            break;
        }
    }
    if let Some(held) = held {
        check_contains(storage, shard, &incarnations, newest.as_ref(), held)?;
    }
    let Some(newest) = newest else { return Ok(None) };
    let mut before: Vec<Log> = Vec::new();
    while let Some(incarnation) = before.last().unwrap_or(&newest).needed_predecessor() {
        let gone = || {
            let reason = format!("it continues the log of {incarnation}, which is missing");
            corruption(&newest.previous.dir, 0, reason)
        };
        if !incarnations.contains(&incarnation) {
            return Err(gone());
        }
        before.push(read(storage, shard, incarnation)?.ok_or_else(gone)?);
    }
    let missing = find_missing(
        storage,
        shard,
        &incarnations,
        &before.last().unwrap_or(&newest).previous,
    )?;
    Ok(Some(merge(newest, before, missing)))
}

/// Returns the predecessor of the oldest log that was read, if the predecessor's records are
/// missing.
fn find_missing(
    storage: &dyn Storage,
    shard: &Shard<'_>,
    incarnations: &[Ulid],
    oldest: &PreviousLog,
) -> Result<Option<MissingLog>, WalError> {
    let Some(incarnation) = predecessor(storage, shard, oldest)? else {
        return Ok(None);
    };
    let missing = MissingLog {
        incarnation,
        named_by: oldest.incarnation,
    };
    if !incarnations.contains(&incarnation) {
        return Ok(Some(missing));
    }
    let dir = shard.dir.join(incarnation.to_string());
    let names = storage.list(&dir).map_err(WalError::io("list", &dir))?;
    let holds_records = names.iter().any(|name| SegmentName::parse(name).is_some());
    Ok((!holds_records).then_some(missing))
}

/// Merges the newest log with the earlier logs that it continues (`before`, newest first).
fn merge(newest: Log, before: Vec<Log>, missing: Option<MissingLog>) -> RecoveryResult {
    let read = newest.records_read + before.iter().map(|log| log.records_read).sum::<u64>();
    let mut open = BTreeMap::new();
    for log in before.iter().rev().chain([&newest]) {
        if log.open_is_complete {
            open.clear();
        }
        for ended in &log.ended_earlier_exchanges {
            open.remove(ended);
        }
        open.extend(log.open.clone());
    }
    let mut untold = Vec::new();
    let mut told = newest.predecessor_ended;
    for log in before {
        if told {
            break;
        }
        told = log.predecessor_ended;
        untold.push(log.previous);
    }
    RecoveryResult {
        newest: newest.previous,
        logs_with_unrecorded_end: untold,
        unfinished_exchanges: open.into_values().collect(),
        records_read: read,
        missing,
    }
}

/// Checks that the volume contains the records of a checkpoint stored elsewhere.
fn check_contains(
    storage: &dyn Storage,
    shard: &Shard<'_>,
    incarnations: &[Ulid],
    newest: Option<&Log>,
    held: &Checkpoint,
) -> Result<(), WalError> {
    let behind = |found: String| WalError::LedgerBehind {
        origin: held.origin.clone(),
        size: held.size,
        found,
    };
    let Some(incarnation) = incarnations
        .iter()
        .find(|incarnation| shard.origin(**incarnation) == held.origin)
    else {
        return Err(behind("the volume has no such log".to_owned()));
    };
    let own;
    let log = match newest {
        Some(newest) if newest.previous.incarnation == *incarnation => newest,
        _ => match read(storage, shard, *incarnation)? {
            Some(log) => {
                own = log;
                &own
            }
            None => return Err(behind("the volume has no records of this log".to_owned())),
        },
    };
    let PreviousLog { size, root, dir, .. } = &log.previous;
    if *size < held.size {
        return Err(behind(format!("the volume has only {size} records of this log")));
    }
    let proved = TreeFile::open(storage, dir)
        .and_then(|tree| consistency_proof(&tree, held.size, *size))
        .is_ok_and(|proof| verify_consistency(held.size, &held.root, *size, root, &proof).is_ok());
    let other = || behind("the volume has different records".to_owned());
    if proved || root_at(storage, dir, *incarnation, held.size)? == held.root {
        Ok(())
    } else {
        Err(other())
    }
}

/// Computes the root of the first `size` records of a log from the records themselves.
fn root_at(storage: &dyn Storage, dir: &Path, incarnation: Ulid, size: u64) -> Result<Hash, WalError> {
    let mut log = LogReader::open(storage, dir, incarnation)?;
    let mut mmr = Mmr::new();
    while mmr.size() < size {
        match log.next()? {
            LogItem::Record(stored) if stored.seq == mmr.size() => {
                mmr.push(leaf_hash(log.payload(&stored)), &mut |_| {});
            }
            LogItem::Flaw(flaw) if flaw.is_trailing_data => {}
            _ => break,
        }
    }
    Ok(mmr.root())
}

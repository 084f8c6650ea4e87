//! Replays logs that [`inspect`](super::inspect) has verified, so that a successor can rebuild their state.

use super::key::log_key;
use super::log::verify_checkpoint;
use super::recovery_result::UnfinishedExchange;
use super::shard::{Shard, incarnations};
use crate::resume::{self, ResumeKey};
use crate::{Storage, WalError};
use proofgate_evidence::checkpoint_file::{self, CHECKPOINT_FILE};
use proofgate_evidence::log_reader::{LogItem, LogReader};
use proofgate_ledger::record::{self, Record};
use std::path::Path;
use ulid::Ulid;

/// Passes the records of one incarnation's log to `take`, in order, from record `from` to the end
/// of the log or its first defect, so that a successor can rebuild the state of that incarnation.
/// [`inspect`](super::inspect) must have verified the log, because this function verifies nothing.
///
/// # Errors
/// [`EvidenceError::Io`](crate::EvidenceError::Io); [`EvidenceError::Ledger`](crate::EvidenceError::Ledger) when a record
/// cannot be parsed.
pub fn replay(
    storage: &dyn Storage,
    shard_dir: &Path,
    incarnation: Ulid,
    from: u64,
    mut take: impl FnMut(&Record<'_>),
) -> Result<(), WalError> {
    let dir = shard_dir.join(incarnation.to_string());
    let mut log = LogReader::open(storage, &dir, incarnation)?;
    log.seek(from);
    while let LogItem::Record(stored) = log.next()? {
        if stored.seq >= from {
            take(&record::parse(log.payload(&stored))?);
        }
    }
    Ok(())
}

/// Returns the logs of one worker run, oldest first: the incarnation `first` and the logs that
/// continued it while the worker ran, all before `until`. Each log is returned with the position of
/// its first record across all these logs.
///
/// # Errors
/// [`EvidenceError::Io`](crate::EvidenceError::Io); [`EvidenceError::Ledger`](crate::EvidenceError::Ledger) when a
/// checkpoint is not signed by the key.
pub fn run_logs(
    storage: &dyn Storage,
    shard: &Shard<'_>,
    first: Ulid,
    until: Ulid,
) -> Result<Vec<(Ulid, u64)>, WalError> {
    let mut logs = Vec::new();
    let mut base = 0;
    for incarnation in incarnations(storage, shard.dir, None)? {
        if incarnation < first || incarnation >= until {
            continue;
        }
        logs.push((incarnation, base));
        let dir = shard.dir.join(incarnation.to_string());
        // Only the last log may have records after its checkpoint, and no log follows it.
        if let Some(note) = checkpoint_file::read(storage, &dir)? {
            base += verify_checkpoint(
                &note,
                &dir.join(CHECKPOINT_FILE),
                &shard.origin(incarnation),
                log_key(storage, shard, &dir, incarnation)?,
            )?
            .size;
        }
    }
    Ok(logs)
}

/// Returns the resume point of a log and the exchanges open at that point; `None` when the log must
/// be read from its start.
///
/// # Errors
/// [`EvidenceError::Io`](crate::EvidenceError::Io).
pub fn find_resume_point(
    storage: &dyn Storage,
    shard: &Shard<'_>,
    incarnation: Ulid,
) -> Result<Option<(u64, Vec<UnfinishedExchange>)>, WalError> {
    let dir = shard.dir.join(incarnation.to_string());
    let key = log_key(storage, shard, &dir, incarnation)?;
    let resume = resume::read(storage, &dir, &ResumeKey::new(key, incarnation))?;
    Ok(resume.map(|resume| (resume.size, resume.open)))
}

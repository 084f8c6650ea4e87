//! What a successor reads of logs that [`inspect`](super::inspect) has verified, to work out anew what they knew.

use super::key::log_key;
use super::log::verify_checkpoint;
use super::recovered::UnfinishedExchange;
use super::shard::{Shard, incarnations};
use crate::resume::{self, ResumeKey};
use crate::{Storage, WalError};
use proofgate_evidence::checkpoint_file::{self, CHECKPOINT_FILE};
use proofgate_evidence::log_reader::{LogItem, LogReader};
use proofgate_ledger::record::{self, Record};
use std::path::Path;
use ulid::Ulid;

/// Gives `take` the records of one incarnation's log from record `from` on, in order, up to its end or its first flaw:
/// what a successor needs to work out anew what the incarnation knew. Nothing is verified that [`inspect`](super::inspect) has not
/// verified.
///
/// # Errors
/// [`EvidenceError::Io`]; [`EvidenceError::Ledger`] when a record is not one.
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

/// The logs that one life of a worker wrote: the incarnation `first` and those that followed it while it ran, which are
/// all before `until`. Oldest first, with the position of each one's first record among all of them.
///
/// # Errors
/// [`EvidenceError::Io`]; [`EvidenceError::Ledger`] when a checkpoint is not signed by the key.
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
        // Only the last of them was not signed to its end, and none is behind it.
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

/// Where a log can be taken up, and which exchanges are open there; `None` when it has to be read from its beginning.
///
/// # Errors
/// [`EvidenceError::Io`].
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

//! Selects the key of a log: the ledger's key, or the key before it. A log has one key forever. A
//! successor also uses this key to sign the end of the log.

use super::shard::Shard;
use crate::authenticity::FrameTags;
use crate::{Storage, WalError};
use proofgate_evidence::checkpoint_file;
use proofgate_evidence::log_reader::{LogItem, LogReader};
use proofgate_ledger::{Checkpoint, LedgerError, SigningKey};
use std::path::Path;
use ulid::Ulid;

/// Returns the key of a log. It is the former key if that key signed the log's checkpoint or,
/// without a checkpoint, framed the log's first record. Otherwise it is the ledger's key, with
/// which the log must then verify.
///
/// # Errors
/// [`EvidenceError::Io`](crate::EvidenceError::Io); [`EvidenceError::Ledger`](crate::EvidenceError::Ledger) when the
/// former key had expired before the log started.
pub(crate) fn log_key<'s>(
    storage: &dyn Storage,
    shard: &Shard<'s>,
    dir: &Path,
    incarnation: Ulid,
) -> Result<&'s SigningKey, WalError> {
    let Some(former) = shard.previous_key else {
        return Ok(shard.key);
    };
    let is_formers = match checkpoint_file::read(storage, dir)? {
        // Verify with the key's lineage, so that a log that the former key started after its
        // validity ended is refused.
        Some(note) => match Checkpoint::verify_signer(&note, &shard.key.verifying_key()) {
            Ok((_, signer)) => signer.is_same_key(&former.verifying_key()),
            Err(ended @ LedgerError::KeySuperseded(_)) => return Err(ended.into()),
            Err(_) => false,
        },
        None => is_framed_by(storage, former, dir, incarnation)?,
    };
    Ok(if is_formers { former } else { shard.key })
}

fn is_framed_by(
    storage: &dyn Storage,
    key: &SigningKey,
    dir: &Path,
    incarnation: Ulid,
) -> Result<bool, WalError> {
    let mut log = LogReader::open(storage, dir, incarnation)?;
    let LogItem::Record(stored) = log.next()? else {
        return Ok(false);
    };
    let (frame, tag) = log.tagged_bytes(&stored);
    Ok(FrameTags::new(key, incarnation)?.verify(stored.seq, frame, tag))
}

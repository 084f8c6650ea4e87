//! Finds the signed logs of a ledger, with the size that the log itself or a successor has signed.

use crate::IndexError;
use proofgate_evidence::layout::{Shard, shards};
use proofgate_evidence::removal::{self, RemovalState};
use proofgate_evidence::{EvidenceError, ReadStorage, Ulid, checkpoint_file};
use proofgate_ledger::{Checkpoint, LedgerError, VerifyingKey};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A log with its newest checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedLog {
    /// Its directory.
    pub dir: PathBuf,
    /// The signed note.
    pub note: String,
}

/// Returns the logs under a ledger's directory that are signed beyond their `known` size (records,
/// by origin), oldest of each shard first. Also describes problems with the checkpoints of other
/// logs. A log that is known to have ended, with the size `u64::MAX`, is skipped. A log that the
/// retention job removed is also skipped; only the `keeping` key can verify this.
///
/// # Errors
/// [`IndexError::Evidence`] when the directory cannot be listed.
pub fn signed_logs(
    storage: &dyn ReadStorage,
    ledger: &Path,
    key: &VerifyingKey,
    retention_key: Option<&VerifyingKey>,
    known: &BTreeMap<String, u64>,
) -> Result<(Vec<SignedLog>, Vec<String>), IndexError> {
    let found = match shards(storage, ledger) {
        Err(EvidenceError::NotALog(_)) => Vec::new(),
        other => other?,
    };
    let (mut logs, mut problems) = (Vec::new(), Vec::new());
    for shard in &found {
        let Some(name) = &shard.name else { continue };
        for incarnation in &shard.incarnations {
            let origin = format!("{}/{name}/{incarnation}", key.name());
            let size = known.get(&origin).copied().unwrap_or(0);
            if size == u64::MAX {
                continue;
            }
            let dir = shard.dir.join(incarnation.to_string());
            let to_read = newest_note(storage, shard, *incarnation, key, (&origin, size)).and_then(|note| {
                let Some(note) = note else { return Ok(None) };
                Ok((!was_removed(storage, &dir, key, retention_key)?).then_some(note))
            });
            match to_read {
                Ok(note) => logs.extend(note.map(|note| SignedLog { dir, note })),
                Err(reason) => problems.push(format!("{origin}: {reason}")),
            }
        }
    }
    Ok((logs, problems))
}

/// Returns whether the retention job has removed a log. A tombstone that is not signed by the retention key, or cannot be
/// verified, does not hide a log: it is a problem to report.
fn was_removed(
    storage: &dyn ReadStorage,
    dir: &Path,
    key: &VerifyingKey,
    retention_key: Option<&VerifyingKey>,
) -> Result<bool, String> {
    match removal::read(storage, dir, Some(key), retention_key).map_err(|error| error.to_string())? {
        RemovalState::None => Ok(false),
        RemovalState::Refused(refusal) if refusal.wrong_key => Err(format!(
            "its tombstone is refused: {refusal} [{}]",
            LedgerError::WRONG_KEY
        )),
        RemovalState::Refused(refusal) => Err(format!("its tombstone is refused: {refusal}")),
        RemovalState::Done(_) if retention_key.is_none() => {
            Err("it was removed, but without the retention key its tombstone cannot be verified".to_owned())
        }
        RemovalState::Done(_) => Ok(true),
    }
}

/// Returns the newest note of a log that covers more than `size` records.
fn newest_note(
    storage: &dyn ReadStorage,
    shard: &Shard,
    incarnation: Ulid,
    key: &VerifyingKey,
    (origin, size): (&str, u64),
) -> Result<Option<String>, String> {
    let mut newest: Option<(u64, String)> = None;
    let mut consider = |note: Option<String>| -> Result<(), String> {
        let Some(note) = note else { return Ok(()) };
        let wrong = |error: LedgerError| format!("its checkpoint is refused: {error} [{}]", error.code());
        // The sizes of most notes are already known, so these notes need not be verified.
        let least = newest.as_ref().map_or(size, |(size, _)| *size);
        if Checkpoint::parse_unverified(&note).map_err(wrong)?.size <= least {
            return Ok(());
        }
        let signed = Checkpoint::verify(&note, key).map_err(wrong)?;
        if signed.origin != origin {
            return Err(format!("its checkpoint is for another log, {}", signed.origin));
        }
        newest = Some((signed.size, note));
        Ok(())
    };
    let unread = |error: EvidenceError| error.to_string();
    let own = shard.dir.join(incarnation.to_string());
    consider(checkpoint_file::read(storage, &own).map_err(unread)?)?;
    // The successor of a killed worker signs the worker's last records.
    let later = shard.incarnations.iter().filter(|later| **later > incarnation);
    for successor in later {
        let dir = shard.dir.join(successor.to_string());
        consider(checkpoint_file::read_successor_note(storage, &dir, incarnation).map_err(unread)?)?;
    }
    Ok(newest.map(|(_, note)| note))
}

//! `fsck`: checks all logs under a path and reports each problem with its location and severity. It
//! changes no file.
//!
//! CRCs detect accidents, and the tree detects tampering. `fsck` compares records with their
//! checksums and their chain, the tree file and the signed checkpoint with the records, and every
//! incarnation with the statements of its successor. It can also check a log that is being written.

mod analyses;
mod chain;
mod erasure_check;
mod exchanges;
mod held_checkpoints;
mod hold_check;
mod key_destruction_check;
mod keys;
mod payload_check;
mod removal_check;
mod salt_check;
mod scan;
mod scanned_log;
mod scope;
mod tree_check;
mod unreadable_log;

use crate::key_destructions::DestroyedKeys;
use crate::layout::shards;
use crate::pinning_storage::{PinnedFile, PinningStorage};
use crate::report::{Report, Verdict};
use crate::{EvidenceError, HeldCheckpoint, ReadStorage};
use std::path::Path;

pub use scope::FsckKeys;
use scope::Scope;

/// Checks the directory of a gateway, a shard or one incarnation. Without a ledger key, signatures
/// are not checked and the verdict is at best incomplete; the same holds for a removed log without
/// the retention key. Every checkpoint in `held`, which was stored outside the volume, must belong
/// to a log that is present, holds at least as many records, and leads to the same root.
///
/// # Errors
/// [`EvidenceError::NotALog`], and [`EvidenceError::Io`] when `path` or a shard cannot be listed.
/// Any other file that cannot be read is a finding, and the rest is checked.
pub fn fsck<'k>(
    storage: &dyn ReadStorage,
    path: &Path,
    keys: impl Into<FsckKeys<'k>>,
    held: &[HeldCheckpoint],
) -> Result<Report, EvidenceError> {
    check(storage, path, keys.into(), held, Scope::Ledger)
}

/// Same as [`fsck`], for a mirror: a copy without salts, trees, and the running log at the end of
/// each shard.
///
/// # Errors
/// Same as [`fsck`].
pub fn fsck_mirror<'k>(
    storage: &dyn ReadStorage,
    path: &Path,
    keys: impl Into<FsckKeys<'k>>,
    held: &[HeldCheckpoint],
) -> Result<Report, EvidenceError> {
    check(storage, path, keys.into(), held, Scope::Mirror)
}

/// Same as [`fsck_mirror`], for one log that has ended. Also returns the files that were read, with
/// the digests of the bytes that were read.
///
/// # Errors
/// Same as [`fsck`], and [`EvidenceError::Io`] for any file that cannot be read. The caller must
/// then repeat the check.
pub fn fsck_pinned<'k>(
    storage: &dyn ReadStorage,
    dir: &Path,
    keys: impl Into<FsckKeys<'k>>,
    held: &[HeldCheckpoint],
) -> Result<(Report, Vec<PinnedFile>), EvidenceError> {
    let pinned = PinningStorage::new(storage);
    let report = check(&pinned, dir, keys.into(), held, Scope::SingleLog)?;
    Ok((report, pinned.files()))
}

fn check(
    storage: &dyn ReadStorage,
    path: &Path,
    keys: FsckKeys<'_>,
    held: &[HeldCheckpoint],
    of: Scope,
) -> Result<Report, EvidenceError> {
    let mut incarnations = Vec::new();
    let mut held = held_checkpoints::HeldCheckpoints::new(held);
    // If all files are missing, only the held checkpoints show that logs existed.
    let found = match shards(storage, path) {
        Err(EvidenceError::NotALog(_)) if !held.is_empty() => Vec::new(),
        other => other?,
    };
    let ledger = found.first().and_then(|shard| shard.dir.parent()).unwrap_or(path);
    let (line, mut findings) = match keys::follow_successions(storage, ledger, keys.ledger) {
        Err(error) if of != Scope::SingleLog => {
            let found =
                unreadable_log::unreadable_finding(error, ": the successors of the given key are not known")?;
            (keys.ledger.cloned(), vec![found])
        }
        other => other?,
    };
    if of == Scope::SingleLog {
        // Findings about other files of the ledger do not concern this log.
        findings.clear();
    }
    let keys = FsckKeys {
        ledger: line.as_ref(),
        ..keys
    };
    let mut destroyed = DestroyedKeys::default();
    match key_destruction_check::read(storage, ledger, keys, of == Scope::Ledger) {
        Ok((read, refused)) => {
            destroyed = read;
            findings.extend(refused);
        }
        Err(error) => findings.push(unreadable_log::unreadable_finding(
            error,
            ": it is not known which shred keys were destroyed",
        )?),
    }
    if of == Scope::Ledger {
        match hold_check::check(storage, ledger, keys) {
            Ok(found) => findings.extend(found),
            Err(error) => findings.push(unreadable_log::unreadable_finding(
                error,
                ": hold statements were not checked",
            )?),
        }
    }
    for shard in &found {
        chain::check(
            storage,
            shard,
            (keys, &destroyed, of),
            &mut held,
            &mut incarnations,
        )?;
    }
    findings.extend(held.unmatched(path));
    let verdict = incarnations
        .iter()
        .flat_map(|report| &report.findings)
        .chain(&findings)
        .map(|finding| finding.verdict)
        .max();
    let verdict = verdict.unwrap_or(Verdict::Ok);
    let records = incarnations.iter().map(|report| report.records).sum();
    let is_whole = of != Scope::SingleLog && found.iter().all(|shard| shard.dir.parent() == Some(path));
    Ok(Report {
        ledger: is_whole.then(|| path.to_owned()),
        verdict,
        exit_code: verdict.exit_code(),
        records,
        against: held.len(),
        keys: keys::key_reports(line.as_ref()),
        incarnations,
        findings,
    })
}

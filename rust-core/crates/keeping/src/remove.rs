//! Removes a log. The retained files are written first, then the tombstone, and only then are files deleted: an
//! interruption leaves either a complete log, or a removed log with leftover files.

use crate::RetentionError;
use crate::anchors::not_anchored_reason;
use crate::lock::try_lock_log;
use crate::plan::{PlanRequest, PlannedLog, RemovableLog, RemovalAction, plan};
use crate::policy::current_time;
use crate::reason::{RetentionReason, damage_reason, ends_retained_reason, reason};
use crate::statements::write_hold_statements;
use proofgate_evidence::removal::{
    self, RemovalState, TEMPORARY_FILE, TOMBSTONE_FILE, is_removable, is_retained,
};
use proofgate_evidence::{EvidenceError, Ulid};
use proofgate_ledger::{SigningKey, Tombstone};
use proofgate_wal::{Storage, replace_file};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Plans and carries out the removal of logs; also finishes interrupted removals. Returns the plan as it was carried out.
///
/// # Errors
/// [`RetentionError::StateCorrupt`] and [`RetentionError::InvalidKey`] when the state does not
/// belong to this ledger and this key; [`RetentionError::Wal`], after which another run completes
/// the removal.
pub fn prune(
    storage: &dyn Storage,
    what: &PlanRequest<'_>,
    signing: &SigningKey,
) -> Result<Vec<PlannedLog>, RetentionError> {
    write_hold_statements(
        storage,
        what.ledger,
        what.key,
        what.retention,
        signing,
        current_time(what.now, what.started_at),
    )?;
    let mut planned = plan(storage, what)?;
    let mut staying = BTreeSet::new();
    for log in &mut planned {
        let stays = match &log.action {
            RemovalAction::Remove(_) | RemovalAction::Finish(_) => {
                execute(storage, what, log, signing, &mut staying)
            }
            RemovalAction::Removed | RemovalAction::Retain(_) => continue,
        };
        if let Some(why) = stays.or_else(|error| damage_reason(error).map(Some))? {
            log.action = RemovalAction::Retain(vec![why]);
        }
    }
    Ok(planned)
}

/// Removes a log or finishes its removal; or returns why the log or a file of it is retained.
/// `staying` has the logs whose removal was planned but that have no tombstone.
fn execute(
    storage: &dyn Storage,
    what: &PlanRequest<'_>,
    log: &PlannedLog,
    signing: &SigningKey,
    staying: &mut BTreeSet<Ulid>,
) -> Result<Option<RetentionReason>, RetentionError> {
    let removable = match &log.action {
        RemovalAction::Remove(removable) => Some(removable),
        _ => None,
    };
    if let Some(removable) = removable {
        let kept = removable.admission_logs.intersection(staying).next().copied();
        staying.insert(log.incarnation);
        if let Some(kept) = kept {
            return Ok(Some(ends_retained_reason(kept)));
        }
    }
    let _lock = match try_lock_log(storage, &log.dir)? {
        Ok(lock) => lock,
        Err(why) => return Ok(Some(why)),
    };
    if let Some(removable) = removable {
        write_tombstone(storage, what, &log.dir, removable, signing)?;
        if let Some(why) = refusal_reason(storage, what, log)? {
            return Ok(Some(why));
        }
        staying.remove(&log.incarnation);
    }
    if let Some(anchors) = what.retention.anchors() {
        let note = removal::read_tombstone(storage, &log.dir)?;
        if !note.as_ref().is_some_and(|note| anchors.contains(note)) {
            return Ok(Some(not_anchored_reason(note.as_deref())));
        }
    }
    remove_files(storage, &log.dir)
}

/// Returns why the written files cannot replace a log of which nothing was deleted yet.
fn refusal_reason(
    storage: &dyn Storage,
    what: &PlanRequest<'_>,
    log: &PlannedLog,
) -> Result<Option<RetentionReason>, RetentionError> {
    let why = match removal::read(storage, &log.dir, Some(what.key), Some(what.retention_key))? {
        RemovalState::Done(_) => return Ok(None),
        RemovalState::Refused(refusal) => refusal.reason,
        RemovalState::None => "it is missing".to_owned(),
    };
    let text =
        format!("the tombstone that was just written is not valid: {why}. Nothing of the log was removed");
    Ok(Some(reason("tombstone_refused", text)))
}

/// Writes the retained files of a log, and its tombstone last.
fn write_tombstone(
    storage: &dyn Storage,
    what: &PlanRequest<'_>,
    dir: &Path,
    removable: &RemovableLog,
    signing: &SigningKey,
) -> Result<(), RetentionError> {
    let directory = storage.open_dir(dir).map_err(EvidenceError::io("open", dir))?;
    let write =
        |name: &str, bytes: &[u8]| replace_file(storage, &*directory, dir, (TEMPORARY_FILE, name), bytes);
    // A foreign file with such a name would be read as a retained file.
    let names = storage.list(dir).map_err(EvidenceError::io("list", dir))?;
    for name in names.iter().filter(|name| is_retained(name)) {
        let path = dir.join(name);
        storage
            .remove(&path)
            .map_err(EvidenceError::io("remove", &path))?;
    }
    for (name, bytes) in &removable.files {
        write(name, bytes)?;
    }
    let tombstone = Tombstone {
        removed_at: current_time(what.now, what.started_at),
        ..removable.tombstone.clone()
    };
    write(TOMBSTONE_FILE, tombstone.sign(signing)?.as_bytes())?;
    Ok(())
}

/// Deletes the files of a log that has its tombstone; returns the reason if an entry is retained because it is not a
/// file.
fn remove_files(storage: &dyn Storage, dir: &Path) -> Result<Option<RetentionReason>, RetentionError> {
    let directory = storage.open_dir(dir).map_err(EvidenceError::io("open", dir))?;
    // Sync first: the tombstone that was read may not be on the disk yet.
    directory.sync().map_err(EvidenceError::io("sync", dir))?;
    let names = storage.list(dir).map_err(EvidenceError::io("list", dir))?;
    let mut stays = None;
    for name in names.iter().filter(|name| is_removable(name)) {
        let path = dir.join(name);
        match storage.remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                stays = Some(damage_reason(EvidenceError::io("remove", &path)(error).into())?);
            }
            _ => {}
        }
    }
    directory.sync().map_err(EvidenceError::io("sync", dir))?;
    Ok(stays)
}

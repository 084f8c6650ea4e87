//! How a log goes. What stays of it is written first, then its tombstone, and only then is anything removed: whatever cuts
//! this short leaves a whole log, or one that was removed and of which files are left.

use crate::KeepingError;
use crate::anchors::not_anchored;
use crate::lock::lock;
use crate::plan::{Fate, Plan, Planned, Removable, plan};
use crate::policy::at;
use crate::reason::{Reason, damaged, ends_kept, reason};
use crate::statements::state_holds;
use proofgate_evidence::removal::{self, Removal, TEMPORARY, TOMBSTONE, goes, is_kept};
use proofgate_evidence::{EvidenceError, Ulid};
use proofgate_ledger::{SigningKey, Tombstone};
use proofgate_wal::{Storage, replace_file};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Plans, and removes what may go; what was cut short before is finished. Returns the plan as it was carried out.
///
/// # Errors
/// [`KeepingError::StateCorrupt`] and [`KeepingError::Key`] when the state is not of this ledger and this key;
/// [`KeepingError::Wal`]: what was begun is finished by doing it again.
pub fn prune(
    storage: &dyn Storage,
    what: &Plan<'_>,
    signing: &SigningKey,
) -> Result<Vec<Planned>, KeepingError> {
    state_holds(
        storage,
        what.ledger,
        what.key,
        what.retention,
        signing,
        at(what.now, what.begun),
    )?;
    let mut planned = plan(storage, what)?;
    let mut staying = BTreeSet::new();
    for log in &mut planned {
        let stays = match &log.fate {
            Fate::Remove(_) | Fate::Finish(_) => carry_out(storage, what, log, signing, &mut staying),
            Fate::Removed | Fate::Stay(_) => continue,
        };
        if let Some(why) = stays.or_else(|error| damaged(error).map(Some))? {
            log.fate = Fate::Stay(vec![why]);
        }
    }
    Ok(planned)
}

/// Removes a log, or finishes that; or says why it, or something of it, stays. `staying` are those that were to go and have
/// no tombstone.
fn carry_out(
    storage: &dyn Storage,
    what: &Plan<'_>,
    log: &Planned,
    signing: &SigningKey,
    staying: &mut BTreeSet<Ulid>,
) -> Result<Option<Reason>, KeepingError> {
    let removable = match &log.fate {
        Fate::Remove(removable) => Some(removable),
        _ => None,
    };
    if let Some(removable) = removable {
        let kept = removable.ends_of.intersection(staying).next().copied();
        staying.insert(log.incarnation);
        if let Some(kept) = kept {
            return Ok(Some(ends_kept(kept)));
        }
    }
    let _lock = match lock(storage, &log.dir)? {
        Ok(lock) => lock,
        Err(why) => return Ok(Some(why)),
    };
    if let Some(removable) = removable {
        bury(storage, what, &log.dir, removable, signing)?;
        if let Some(why) = refused(storage, what, log)? {
            return Ok(Some(why));
        }
        staying.remove(&log.incarnation);
    }
    if let Some(anchors) = what.retention.anchors() {
        let note = removal::read_tombstone(storage, &log.dir)?;
        if !note.as_ref().is_some_and(|note| anchors.has(note)) {
            return Ok(Some(not_anchored(note.as_deref())));
        }
    }
    clear(storage, &log.dir)
}

/// Why what was written does not stand for a log, of which nothing was removed yet.
fn refused(storage: &dyn Storage, what: &Plan<'_>, log: &Planned) -> Result<Option<Reason>, KeepingError> {
    let why = match removal::read(storage, &log.dir, Some(what.key), Some(what.keeping))? {
        Removal::Done(_) => return Ok(None),
        Removal::Refused(refusal) => refusal.why,
        Removal::None => "it is missing".to_owned(),
    };
    let text =
        format!("the tombstone that was just written is not valid: {why}. Nothing of the log was removed");
    Ok(Some(reason("tombstone_refused", text)))
}

/// Writes what stays of a log, and its tombstone last.
fn bury(
    storage: &dyn Storage,
    what: &Plan<'_>,
    dir: &Path,
    removable: &Removable,
    signing: &SigningKey,
) -> Result<(), KeepingError> {
    let directory = storage.open_dir(dir).map_err(EvidenceError::io("open", dir))?;
    let write = |name: &str, bytes: &[u8]| replace_file(storage, &*directory, dir, (TEMPORARY, name), bytes);
    // What somebody put there under such a name would be taken for a part of it.
    let names = storage.list(dir).map_err(EvidenceError::io("list", dir))?;
    for name in names.iter().filter(|name| is_kept(name)) {
        let path = dir.join(name);
        storage
            .remove(&path)
            .map_err(EvidenceError::io("remove", &path))?;
    }
    for (name, bytes) in &removable.files {
        write(name, bytes)?;
    }
    let tombstone = Tombstone {
        removed: at(what.now, what.begun),
        ..removable.tombstone.clone()
    };
    write(TOMBSTONE, tombstone.sign(signing)?.as_bytes())?;
    Ok(())
}

/// Removes what goes of a log that has its tombstone; and says why something of that stays, which is no file.
fn clear(storage: &dyn Storage, dir: &Path) -> Result<Option<Reason>, KeepingError> {
    let directory = storage.open_dir(dir).map_err(EvidenceError::io("open", dir))?;
    // As the disk has it: a tombstone that was read may not be on it yet.
    directory.sync().map_err(EvidenceError::io("sync", dir))?;
    let names = storage.list(dir).map_err(EvidenceError::io("list", dir))?;
    let mut stays = None;
    for name in names.iter().filter(|name| goes(name)) {
        let path = dir.join(name);
        match storage.remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                stays = Some(damaged(EvidenceError::io("remove", &path)(error).into())?);
            }
            _ => {}
        }
    }
    directory.sync().map_err(EvidenceError::io("sync", dir))?;
    Ok(stays)
}

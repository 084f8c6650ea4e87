//! Statements beside the shards: of keys that were destroyed, and of holds, so that they are known outside the
//! retention job's state.

use crate::hold::{Hold, Released};
use crate::{KeepingError, RetentionState};
use proofgate_evidence::EvidenceError;
use proofgate_evidence::hold_statements::{self, HOLD_STATEMENTS, file_name};
use proofgate_evidence::key_successions::ledger_of;
use proofgate_evidence::removal::TEMPORARY;
use proofgate_ledger::{HoldChange, HoldStatement, Justification, SigningKey, VerifyingKey};
use proofgate_wal::{Storage, replace_file};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Stands for an author that an older version did not ask for.
const UNKNOWN_AUTHOR: &str = "not recorded";

/// Writes what the state says of holds, and the ledger at a path does not, as signed statements. They are on the disk when this
/// returns. Whatever removes or destroys something does this first. `now` is in unix microseconds.
///
/// # Errors
/// [`KeepingError::StateSetBack`] when a hold was stated that the state does not have; [`KeepingError::StateCorrupt`] and
/// [`KeepingError::Key`] when the state is not of this ledger and this key; [`KeepingError::Wal`].
pub fn state_holds(
    storage: &dyn Storage,
    path: &Path,
    key: &VerifyingKey,
    retention: &RetentionState,
    signing: &SigningKey,
    now: u64,
) -> Result<u64, KeepingError> {
    retention.require(key, signing)?;
    let ledger = ledger_of(storage, path)?;
    let mut stated = BTreeSet::new();
    for (_, read) in hold_statements::read(storage, &ledger, key.name(), &signing.verifying_key())? {
        // What is refused there is for fsck and the auditor to tell.
        let Ok(statement) = read else { continue };
        let of = |hold: &Hold| (hold.id, hold.added) == (statement.hold, statement.added);
        if !retention.holds().iter().any(of) {
            return Err(KeepingError::StateSetBack(statement.hold));
        }
        let released = matches!(statement.change, HoldChange::Released { .. });
        stated.insert((statement.hold, released));
    }
    let mut written = 0;
    for hold in retention.holds() {
        for statement in statements(key.name(), hold, now)? {
            let released = matches!(statement.change, HoldChange::Released { .. });
            if stated.insert((hold.id, released)) {
                write_note(storage, &ledger.join(HOLD_STATEMENTS), &statement.sign(signing)?)?;
                written += 1;
            }
        }
    }
    Ok(written)
}

/// What is to be stated of a hold.
fn statements(ledger: &str, hold: &Hold, now: u64) -> Result<Vec<HoldStatement>, KeepingError> {
    let scope = serde_json::to_string(&hold.scope).map_err(|error| KeepingError::corrupt("holds", error))?;
    let why = |author: &Option<String>, reason: &str, ticket: &Option<String>| Justification {
        author: author.clone().unwrap_or_else(|| UNKNOWN_AUTHOR.to_owned()),
        reason: reason.to_owned(),
        ticket: ticket.clone(),
    };
    let of = |change, why| {
        let mut statement = HoldStatement {
            ledger: ledger.to_owned(),
            hold: hold.id,
            added: hold.added,
            change,
            stated: now,
            why,
        };
        // By a clock that is behind, too: a hold is stated whatever the time is.
        statement.stated = now.max(statement.time());
        statement
    };
    let placed = HoldChange::Placed { scope };
    let mut found = vec![of(placed, why(&hold.author, &hold.reason, &hold.ticket))];
    if let Some(Released {
        at,
        author,
        reason,
        ticket,
    }) = &hold.released
    {
        found.push(of(
            // By a clock that was set back, where an older version did not refuse it.
            HoldChange::Released {
                at: (*at).max(hold.added),
            },
            why(author, reason, ticket),
        ));
    }
    Ok(found)
}

/// Keeps a note in a directory beside the shards.
pub(crate) fn write_note(storage: &dyn Storage, dir: &Path, note: &str) -> Result<(), KeepingError> {
    match storage.create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(EvidenceError::io("create", dir)(error).into());
        }
        _ => {}
    }
    let ledger = dir.parent().unwrap_or(dir);
    let parent = storage
        .open_dir(ledger)
        .map_err(EvidenceError::io("open", ledger))?;
    parent.sync().map_err(EvidenceError::io("sync", ledger))?;
    let directory = storage.open_dir(dir).map_err(EvidenceError::io("open", dir))?;
    replace_file(
        storage,
        &*directory,
        dir,
        (TEMPORARY, &file_name(note)),
        note.as_bytes(),
    )?;
    Ok(())
}

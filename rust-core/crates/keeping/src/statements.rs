//! Statements about destroyed keys and holds, in folders beside the shards, so that they are known
//! outside the retention job's state.

use crate::hold::{Hold, HoldRelease};
use crate::{RetentionError, RetentionState};
use proofgate_evidence::EvidenceError;
use proofgate_evidence::hold_statements::{self, HOLD_STATEMENTS_DIR, file_name};
use proofgate_evidence::key_successions::ledger_directory;
use proofgate_evidence::removal::TEMPORARY_FILE;
use proofgate_ledger::{HoldChange, HoldStatement, Justification, SigningKey, VerifyingKey};
use proofgate_wal::{Storage, replace_file};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Placeholder for an author that an older version did not record.
const UNKNOWN_AUTHOR: &str = "not recorded";

/// Writes missing signed statements about the state's holds to the ledger at a path. The statements
/// are on the disk when this returns. Every removal or destruction calls this first. `now` is in
/// unix microseconds.
///
/// # Errors
/// [`RetentionError::StateRolledBack`] when a stated hold is not in the state; [`RetentionError::StateCorrupt`] and
/// [`RetentionError::InvalidKey`] when the state does not belong to this ledger and this key; [`RetentionError::Wal`].
pub fn write_hold_statements(
    storage: &dyn Storage,
    path: &Path,
    key: &VerifyingKey,
    retention: &RetentionState,
    signing: &SigningKey,
    now: u64,
) -> Result<u64, RetentionError> {
    retention.check_identity(key, signing)?;
    let ledger = ledger_directory(storage, path)?;
    let mut stated = BTreeSet::new();
    for (_, read) in hold_statements::read(storage, &ledger, key.name(), &signing.verifying_key())? {
        // `fsck` and the auditor report refused statements.
        let Ok(statement) = read else { continue };
        let of = |hold: &Hold| (hold.id, hold.added) == (statement.hold, statement.placed_at);
        if !retention.holds().iter().any(of) {
            return Err(RetentionError::StateRolledBack(statement.hold));
        }
        let released = matches!(statement.change, HoldChange::Released { .. });
        stated.insert((statement.hold, released));
    }
    let mut written = 0;
    for hold in retention.holds() {
        for statement in build_hold_statements(key.name(), hold, now)? {
            let released = matches!(statement.change, HoldChange::Released { .. });
            if stated.insert((hold.id, released)) {
                write_note(
                    storage,
                    &ledger.join(HOLD_STATEMENTS_DIR),
                    &statement.sign(signing)?,
                )?;
                written += 1;
            }
        }
    }
    Ok(written)
}

/// Returns the statements for a hold.
fn build_hold_statements(ledger: &str, hold: &Hold, now: u64) -> Result<Vec<HoldStatement>, RetentionError> {
    let scope =
        serde_json::to_string(&hold.scope).map_err(|error| RetentionError::corrupt("holds", error))?;
    let why = |author: &Option<String>, reason: &str, ticket: &Option<String>| Justification {
        author: author.clone().unwrap_or_else(|| UNKNOWN_AUTHOR.to_owned()),
        reason: reason.to_owned(),
        ticket: ticket.clone(),
    };
    let of = |change, why| {
        let mut statement = HoldStatement {
            ledger: ledger.to_owned(),
            hold: hold.id,
            placed_at: hold.added,
            change,
            signed_at: now,
            justification: why,
        };
        // A hold is stated even if the clock is behind.
        statement.signed_at = now.max(statement.time());
        statement
    };
    let placed = HoldChange::Placed { scope };
    let mut found = vec![of(placed, why(&hold.author, &hold.reason, &hold.ticket))];
    if let Some(HoldRelease {
        at,
        author,
        reason,
        ticket,
    }) = &hold.released
    {
        found.push(of(
            // An older version did not refuse a clock that was set back.
            HoldChange::Released {
                at: (*at).max(hold.added),
            },
            why(author, reason, ticket),
        ));
    }
    Ok(found)
}

/// Writes a note to a directory beside the shards.
pub(crate) fn write_note(storage: &dyn Storage, dir: &Path, note: &str) -> Result<(), RetentionError> {
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
        (TEMPORARY_FILE, &file_name(note)),
        note.as_bytes(),
    )?;
    Ok(())
}

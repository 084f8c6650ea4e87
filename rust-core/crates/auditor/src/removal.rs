//! Removed logs. If a tombstone of the retention job names the accepted head of a log, the log is
//! reported as removed and no longer read.

use crate::check_context::{CheckContext, MAX_NOTE_BYTES, strip_unknown_signatures};
use crate::finding::{FindingCode, RaisedFindings};
use crate::log::{AcceptedHead, Log};
use crate::log_facts::{LogFacts, LogReference};
use crate::statement::check_time;
use proofgate_evidence::EvidenceError;
use proofgate_evidence::removal::{self, RemovalState, RemovedLog, read_tombstone};
use proofgate_evidence::rules::Predecessor;
use proofgate_ledger::strip_other_signatures;

/// Returns whether the retention job removed a log. If the tombstone is refused, the log is checked
/// as if it had no tombstone.
pub(crate) fn check_removal(
    view: &CheckContext<'_>,
    log: &mut Log,
    raised: &mut RaisedFindings,
) -> Result<bool, EvidenceError> {
    let mut refuse = |why: &str| {
        let message = format!("its tombstone is refused: {why}");
        raised.raise(
            FindingCode::TombstoneRefused,
            &log.origin,
            &log.row.shard,
            message,
        );
    };
    if let Some(accepted) = &log.row.removed {
        match read_tombstone(view.storage, &log.dir) {
            Ok(Some(note))
                if note == *accepted || strip_to_retention_key(view, &note).as_ref() == Ok(accepted) => {}
            Ok(_) | Err(EvidenceError::Corruption { .. }) => {
                refuse("the accepted tombstone is missing or was replaced")
            }
            Err(error) => return Err(error),
        }
        return Ok(true);
    }
    let removed = match removal::read(view.storage, &log.dir, Some(view.key), view.retention_key)? {
        RemovalState::None => return Ok(false),
        RemovalState::Refused(why) => {
            refuse(&why.reason);
            return Ok(false);
        }
        RemovalState::Done(removed) => removed,
    };
    let tombstone = match strip_to_retention_key(view, &removed.note) {
        Ok(note) => note,
        Err(why) => {
            refuse(&why);
            return Ok(false);
        }
    };
    if removed.checkpoint.len() > MAX_NOTE_BYTES {
        refuse(&format!(
            "its last checkpoint is too long: {} bytes",
            removed.checkpoint.len()
        ));
        return Ok(false);
    }
    let head = removed.head();
    if head.origin != log.origin {
        refuse(&format!("it belongs to the log {}", head.origin));
        return Ok(false);
    }
    match &log.row.head {
        Some(accepted) if (accepted.size, accepted.root) != (head.size, head.root) => {
            refuse(&format!(
                "it says that the log ended with {} records, but the accepted log has {} records, or its records differ",
                head.size, accepted.size
            ));
            return Ok(false);
        }
        Some(_) if !log.row.ended => {
            refuse("the log has not ended");
            return Ok(false);
        }
        Some(_) => {}
        None => match strip_unknown_signatures(view, &removed.checkpoint, &log.origin) {
            Ok(note) => accept_removed(log, &removed, note, view.now),
            Err((_, why)) => {
                refuse(&why);
                return Ok(false);
            }
        },
    }
    let about = Some(removed.newest_time);
    if let Some((code, message)) = check_time(
        removed.tombstone.removed_at,
        about,
        log.erasures.checked_at,
        view.now,
    ) {
        raised.raise_confirmed(
            code,
            &log.origin,
            &log.row.shard,
            format!("its tombstone has an impossible time: {message}"),
        );
    }
    log.row.removed = Some(tombstone);
    log.target = None;
    log.tail = None;
    log.dirty = true;
    Ok(true)
}

/// Returns a tombstone with only the signature line of the retention key.
fn strip_to_retention_key(view: &CheckContext<'_>, note: &str) -> Result<String, String> {
    let key = view.retention_key.ok_or("no retention key is configured here")?;
    strip_other_signatures(note, key).map_err(|error| error.to_string())
}

/// Accepts a log that was removed before its first check, from its retained files, which the ledger's own key has signed.
fn accept_removed(log: &mut Log, removed: &RemovedLog, note: String, now: u64) {
    let named = |said: &Predecessor| LogReference {
        incarnation: said.incarnation,
        size: said.size,
        root: said.root,
        running: said.running,
    };
    let rules = &removed.tracker;
    let opened = rules.opening();
    log.row.facts = LogFacts {
        origin: opened.map(|opened| opened.origin.clone()),
        predecessor: opened.and_then(|opened| opened.predecessor.as_ref().map(named)),
        takeovers: rules.takeovers().iter().map(|(_, said)| named(said)).collect(),
        sealed: rules.is_sealed(),
        successor: rules.successor(),
        served: true,
        step: None,
        configurations: Vec::new(),
    };
    log.row.head = Some(AcceptedHead {
        size: removed.tombstone.size,
        root: removed.tombstone.root,
        note,
        at: now,
    });
    log.clear_running_state();
}

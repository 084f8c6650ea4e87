//! Logs that were removed by right: a tombstone by the retention job names the head that was accepted. Such a log is
//! told as removed, and read no more.

use crate::facts::{LogFacts, NamedLog};
use crate::finding::{Code, Raised};
use crate::log::{Head, Log};
use crate::statement::judge;
use crate::view::{MAX_NOTE, View, alone};
use proofgate_evidence::EvidenceError;
use proofgate_evidence::removal::{self, Removal, Removed, read_tombstone};
use proofgate_evidence::rules::Predecessor;
use proofgate_ledger::signed_alone;

/// Whether a log was removed by right. One whose tombstone is refused is looked at as if it had none.
pub(crate) fn look(view: &View<'_>, log: &mut Log, raised: &mut Raised) -> Result<bool, EvidenceError> {
    let mut refuse = |why: &str| {
        let message = format!("its tombstone is refused: {why}");
        raised.raise(Code::TombstoneRefused, &log.origin, &log.row.shard, message);
    };
    if let Some(accepted) = &log.row.removed {
        match read_tombstone(view.storage, &log.dir) {
            Ok(Some(note)) if note == *accepted || by_retention_key(view, &note).as_ref() == Ok(accepted) => {
            }
            Ok(_) | Err(EvidenceError::Corruption { .. }) => {
                refuse("the accepted tombstone is missing or was replaced")
            }
            Err(error) => return Err(error),
        }
        return Ok(true);
    }
    let removed = match removal::read(view.storage, &log.dir, Some(view.key), view.keeping)? {
        Removal::None => return Ok(false),
        Removal::Refused(why) => {
            refuse(&why.why);
            return Ok(false);
        }
        Removal::Done(removed) => removed,
    };
    let tombstone = match by_retention_key(view, &removed.note) {
        Ok(note) => note,
        Err(why) => {
            refuse(&why);
            return Ok(false);
        }
    };
    if removed.checkpoint.len() > MAX_NOTE {
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
                "it says that the log ended with {} records, but the accepted log has {} or different records",
                head.size, accepted.size
            ));
            return Ok(false);
        }
        Some(_) if !log.row.ended => {
            refuse("the log has not ended");
            return Ok(false);
        }
        Some(_) => {}
        None => match alone(view, &removed.checkpoint, &log.origin) {
            Ok(note) => adopt(log, &removed, note, view.now),
            Err((_, why)) => {
                refuse(&why);
                return Ok(false);
            }
        },
    }
    let about = Some(removed.newest);
    if let Some((code, message)) = judge(removed.tombstone.removed, about, log.erasures.visited, view.now) {
        raised.raise_now(
            code,
            &log.origin,
            &log.row.shard,
            format!("its tombstone: {message}"),
        );
    }
    log.row.removed = Some(tombstone);
    log.target = None;
    log.tail = None;
    log.dirty = true;
    Ok(true)
}

/// A tombstone, with the line of the retention key alone.
fn by_retention_key(view: &View<'_>, note: &str) -> Result<String, String> {
    let key = view.keeping.ok_or("no retention key is configured here")?;
    signed_alone(note, key).map_err(|error| error.to_string())
}

/// Takes what stays of a log that was removed before it was ever looked at: it is under the ledger's own signature.
fn adopt(log: &mut Log, removed: &Removed, note: String, now: u64) {
    let named = |said: &Predecessor| NamedLog {
        incarnation: said.incarnation,
        size: said.size,
        root: said.root,
        running: said.running,
    };
    let rules = &removed.rules;
    let opened = rules.opened();
    log.row.facts = LogFacts {
        origin: opened.map(|opened| opened.origin.clone()),
        predecessor: opened.and_then(|opened| opened.predecessor.as_ref().map(named)),
        takeovers: rules.takeovers().iter().map(|(_, said)| named(said)).collect(),
        sealed: rules.sealed(),
        successor: rules.successor(),
        served: true,
        step: None,
        configurations: Vec::new(),
    };
    log.row.head = Some(Head {
        size: removed.tombstone.size,
        root: removed.tombstone.root,
        note,
        at: now,
    });
    log.end();
}

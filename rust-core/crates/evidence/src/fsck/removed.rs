//! A log that was removed by right: what stays of it takes its place in the chain.

use super::hold_check::BACKDATED;
use super::scanned::{Head, Scanned, believe, empty_report};
use super::scope::Keys;
use crate::checkpoint_file::{self, CHECKPOINT};
use crate::removal::{self, Removed, TOMBSTONE};
use crate::report::{CheckpointState, RemovedReport, Verdict};
use crate::{EvidenceError, ReadStorage, Refusal};
use base64::{Engine, engine::general_purpose::STANDARD};
use std::collections::BTreeMap;
use std::path::Path;
use ulid::Ulid;

/// A tombstone that is none, is not by the retention key, or of another log, or contradicts what is known of the log.
const REFUSED: &str = "tombstone_refused";
/// There is a tombstone, and no key to check it with.
const UNCHECKED: &str = "tombstone_unchecked";
/// Files of the log are left.
const UNFINISHED: &str = "removal_unfinished";
/// A head that was stated of the log, and nothing shows any more that it was one of its.
const NOT_SHOWN: &str = "head_not_shown";

/// Checks what stays of a log against the heads that others stated of it.
pub(super) fn check(
    storage: &dyn ReadStorage,
    dir: &Path,
    (incarnation, removed): (Ulid, Removed),
    keys: Keys<'_>,
    heads: &[Head],
) -> Result<Scanned, EvidenceError> {
    let last = removed.head();
    let backdated = removed.is_backdated().then_some(removed.newest);
    let Removed {
        tombstone,
        rules,
        remains,
        ..
    } = removed;
    let mut report = empty_report(dir, incarnation);
    report.origin = Some(tombstone.origin);
    report.records = tombstone.size;
    report.root = Some(STANDARD.encode(tombstone.root));
    report.sealed = rules.sealed();
    report.key = rules.opened().and_then(|opened| opened.key.clone());
    report.checkpoint_size = tombstone.size;
    report.checkpoint = match keys.ledger {
        Some(_) => CheckpointState::Verified,
        None => CheckpointState::Unverified,
    };
    report.removed = Some(RemovedReport {
        time: tombstone.removed,
        exchanges: tombstone.exchanges,
        minimum_days: tombstone.minimum_days,
        author: tombstone.why.author,
        reason: tombstone.why.reason,
        ticket: tombstone.why.ticket,
        verified: keys.keeping.is_some(),
    });
    let mut log = Scanned {
        report,
        dir: dir.to_owned(),
        incarnation,
        rules,
        whole: true,
        keeps: BTreeMap::new(),
        signer: None,
        analyses: Vec::new(),
    };
    if keys.ledger.is_none() {
        let message = "no key was given: the signature is not checked".to_owned();
        log.find_in(&dir.join(CHECKPOINT), Verdict::Incomplete, message);
    }
    if keys.keeping.is_none() {
        let message = "a tombstone says that it was removed; without the retention key the tombstone cannot be verified";
        log.find_named(UNCHECKED, Verdict::Incomplete, message.to_owned());
    }
    if let Some(newest) = backdated {
        let message = format!(
            "its tombstone is dated {}, but a record of the log is dated {newest} (unix microseconds)",
            tombstone.removed
        );
        log.find_named(BACKDATED, Verdict::Invalid, message);
    }
    if !remains.is_empty() {
        let message = format!(
            "it was removed, but {} of its files are left (first: {}): run prune again to finish",
            remains.len(),
            remains[0]
        );
        log.find_named(UNFINISHED, Verdict::Incomplete, message);
    }
    let own = own_head(storage, &mut log, keys)?;
    for head in heads.iter().chain(&own) {
        let (verdict, code, why) = match removal::extends(storage, dir, (head.size, head.root), &last)? {
            Some(true) => continue,
            Some(false) if head.size > last.size => (Verdict::Diverged, REFUSED, "more records"),
            Some(false) => (Verdict::Diverged, REFUSED, "another root"),
            None => (
                Verdict::Incomplete,
                NOT_SHOWN,
                "fewer records, and it can no longer be shown that the log began with them",
            ),
        };
        let message = format!(
            "the log was removed with {} records, but {} states {}: {why}",
            last.size, head.who, head.size
        );
        log.find_named(code, verdict, message);
    }
    Ok(log)
}

/// The log's own newest checkpoint, which stays; a successor may have signed for more.
fn own_head(
    storage: &dyn ReadStorage,
    log: &mut Scanned,
    keys: Keys<'_>,
) -> Result<Option<Head>, EvidenceError> {
    let path = log.dir.join(CHECKPOINT);
    let note = match checkpoint_file::read(storage, &log.dir) {
        Ok(None) => return Ok(None),
        Ok(Some(note)) => believe(&note, keys.ledger).map(|(signed, _)| signed),
        Err(EvidenceError::Corruption { reason, .. }) => Err(reason.into()),
        Err(error) => return Err(error),
    };
    let signed = match note {
        Ok(signed) if log.report.origin.as_ref() == Some(&signed.origin) => signed,
        Ok(signed) => {
            let message = format!("it is a checkpoint of another log, {}", signed.origin);
            log.find_in(&path, Verdict::Invalid, message);
            return Ok(None);
        }
        Err(refusal) => {
            log.find_refused(&path, refusal);
            return Ok(None);
        }
    };
    Ok(Some(Head {
        size: signed.size,
        root: signed.root,
        file: path,
        who: "its own checkpoint".to_owned(),
        own: true,
    }))
}

/// Says of a log that is read as if it had no tombstone why its tombstone is refused.
pub(super) fn refuse(log: &mut Scanned, refusal: &Refusal) {
    let message = format!("its {TOMBSTONE} is refused: {refusal}");
    log.find_named(refusal.code().unwrap_or(REFUSED), Verdict::Invalid, message);
}

/// Only a log that has ended, as a later one says, may be removed.
pub(super) fn require_end(logs: &mut [Scanned], next: &[Option<usize>]) {
    for (log, next) in logs.iter_mut().zip(next) {
        if log.report.removed.is_some() && next.is_none() {
            let message = "it was removed, but no later log records its end".to_owned();
            log.find_named(REFUSED, Verdict::Diverged, message);
        }
    }
}

//! Checks a removed log, whose retained files take its place in the chain.

use super::hold_check::STATEMENT_BACKDATED;
use super::scanned_log::{ScannedLog, StatedTreeHead, empty_report, verify_note};
use super::scope::FsckKeys;
use crate::checkpoint_file::{self, CHECKPOINT_FILE};
use crate::removal::{self, RemovedLog, TOMBSTONE_FILE};
use crate::report::{CheckpointState, RemovedReport, Verdict};
use crate::{EvidenceError, ReadStorage, Refusal};
use base64::{Engine, engine::general_purpose::STANDARD};
use std::collections::BTreeMap;
use std::path::Path;
use ulid::Ulid;

/// Finding code: a tombstone is invalid, not signed by the retention key, for another log, or contradicts known facts.
const TOMBSTONE_REFUSED: &str = "tombstone_refused";
/// Finding code: there is a tombstone, but no key to check it with.
const TOMBSTONE_UNCHECKED: &str = "tombstone_unchecked";
/// Finding code: files of the removed log still exist.
const REMOVAL_UNFINISHED: &str = "removal_unfinished";
/// Finding code: no retained file proves that a stated tree head belonged to the log.
const HEAD_UNPROVEN: &str = "head_not_shown";

/// Compares the retained files of a log with the tree heads that other logs stated for it.
pub(super) fn check(
    storage: &dyn ReadStorage,
    dir: &Path,
    (incarnation, removed): (Ulid, RemovedLog),
    keys: FsckKeys<'_>,
    heads: &[StatedTreeHead],
) -> Result<ScannedLog, EvidenceError> {
    let last = removed.head();
    let backdated = removed.is_backdated().then_some(removed.newest_time);
    let RemovedLog {
        tombstone,
        tracker: rules,
        leftover_files: remains,
        ..
    } = removed;
    let mut report = empty_report(dir, incarnation);
    report.origin = Some(tombstone.origin);
    report.records = tombstone.size;
    report.root = Some(STANDARD.encode(tombstone.root));
    report.sealed = rules.is_sealed();
    report.key = rules.opening().and_then(|opened| opened.key.clone());
    report.checkpoint_size = tombstone.size;
    report.checkpoint = match keys.ledger {
        Some(_) => CheckpointState::Verified,
        None => CheckpointState::Unverified,
    };
    report.removed = Some(RemovedReport {
        time: tombstone.removed_at,
        exchanges: tombstone.exchanges,
        minimum_days: tombstone.minimum_days,
        author: tombstone.justification.author,
        reason: tombstone.justification.reason,
        ticket: tombstone.justification.ticket,
        verified: keys.retention.is_some(),
    });
    let mut log = ScannedLog {
        report,
        dir: dir.to_owned(),
        incarnation,
        tracker: rules,
        complete: true,
        note_coverage: BTreeMap::new(),
        signer: None,
        analyses: Vec::new(),
    };
    if keys.ledger.is_none() {
        let message = "no key was given: the signature is not checked".to_owned();
        log.add_finding_in(&dir.join(CHECKPOINT_FILE), Verdict::Incomplete, message);
    }
    if keys.retention.is_none() {
        let message = "a tombstone says that this log was removed, but the tombstone cannot be verified without the retention key";
        log.add_finding_with_code(TOMBSTONE_UNCHECKED, Verdict::Incomplete, message.to_owned());
    }
    if let Some(newest) = backdated {
        let message = format!(
            "its tombstone is dated {}, but a record of the log is dated {newest} (unix microseconds)",
            tombstone.removed_at
        );
        log.add_finding_with_code(STATEMENT_BACKDATED, Verdict::Invalid, message);
    }
    if !remains.is_empty() {
        let message = format!(
            "it was removed, but {} of its files remain (first: {}): run prune again to finish",
            remains.len(),
            remains[0]
        );
        log.add_finding_with_code(REMOVAL_UNFINISHED, Verdict::Incomplete, message);
    }
    let own = own_head(storage, &mut log, keys)?;
    for head in heads.iter().chain(&own) {
        let (verdict, code, why) =
            match removal::is_proven_prefix(storage, dir, (head.size, head.root), &last)? {
                Some(true) => continue,
                Some(false) if head.size > last.size => (
                    Verdict::Diverged,
                    TOMBSTONE_REFUSED,
                    "the removed log had fewer records",
                ),
                Some(false) => (
                    Verdict::Diverged,
                    TOMBSTONE_REFUSED,
                    "the root of these records differs",
                ),
                None => (
                    Verdict::Incomplete,
                    HEAD_UNPROVEN,
                    "no proof remains that the log began with these records",
                ),
            };
        let message = format!(
            "the log was removed with {} records, but {} states {} records: {why}",
            last.size, head.source, head.size
        );
        log.add_finding_with_code(code, verdict, message);
    }
    Ok(log)
}

/// Returns the log's own newest checkpoint, which is retained. A successor may have signed a
/// checkpoint over more records.
fn own_head(
    storage: &dyn ReadStorage,
    log: &mut ScannedLog,
    keys: FsckKeys<'_>,
) -> Result<Option<StatedTreeHead>, EvidenceError> {
    let path = log.dir.join(CHECKPOINT_FILE);
    let note = match checkpoint_file::read(storage, &log.dir) {
        Ok(None) => return Ok(None),
        Ok(Some(note)) => verify_note(&note, keys.ledger).map(|(signed, _)| signed),
        Err(EvidenceError::Corruption { reason, .. }) => Err(reason.into()),
        Err(error) => return Err(error),
    };
    let signed = match note {
        Ok(signed) if log.report.origin.as_ref() == Some(&signed.origin) => signed,
        Ok(signed) => {
            let message = format!("it is a checkpoint of another log, {}", signed.origin);
            log.add_finding_in(&path, Verdict::Invalid, message);
            return Ok(None);
        }
        Err(refusal) => {
            log.add_refusal(&path, refusal);
            return Ok(None);
        }
    };
    Ok(Some(StatedTreeHead {
        size: signed.size,
        root: signed.root,
        file: path,
        source: "its own checkpoint".to_owned(),
        is_own: true,
    }))
}

/// Reports the reason why a log's tombstone is refused. Such a log is read as if it had no
/// tombstone.
pub(super) fn report_refused_tombstone(log: &mut ScannedLog, refusal: &Refusal) {
    let message = format!("its {TOMBSTONE_FILE} is refused: {refusal}");
    log.add_finding_with_code(
        refusal.code().unwrap_or(TOMBSTONE_REFUSED),
        Verdict::Invalid,
        message,
    );
}

/// Checks that a later log states the end of each removed log, because a log may be removed only
/// after its end.
pub(super) fn require_end(logs: &mut [ScannedLog], next: &[Option<usize>]) {
    for (log, next) in logs.iter_mut().zip(next) {
        if log.report.removed.is_some() && next.is_none() {
            let message = "it was removed, but no later log records its end".to_owned();
            log.add_finding_with_code(TOMBSTONE_REFUSED, Verdict::Diverged, message);
        }
    }
}

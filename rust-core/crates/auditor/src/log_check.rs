//! Checks one log: first its checkpoint, then its records up to that checkpoint.

use crate::chain::Successors;
use crate::check_context::{CheckContext, MAX_NOTE_BYTES, strip_unknown_signatures};
use crate::finding::{FindingCode, RaisedFindings};
use crate::log::{Log, TargetCheckpoint};
use crate::log_statements;
use crate::log_tail::{LogTail, ReadBudget, ReadProgress, has_data_after, missing_files};
use crate::reachability::is_unreachable;
use crate::removal;
use proofgate_evidence::{EvidenceError, checkpoint_file};
use proofgate_ledger::Checkpoint;
use std::io;
use std::path::Path;

/// Numbers of records that are read from an unsigned log, step by step, to determine whether it
/// served requests.
const UNSIGNED_RECORDS: [u64; 4] = [2, 16, 256, 4096];
/// Microseconds until a log whose records do not verify, or that was never started, is read again.
pub(crate) const RETRY_DELAY: u64 = 60_000_000;

/// Checks a log. Its `successors` may hold a note that covers its end.
pub(crate) fn check_log(
    view: &CheckContext<'_>,
    log: &mut Log,
    successors: &Successors,
    budget: &mut ReadBudget,
    raised: &mut RaisedFindings,
) {
    if let Err(error) = try_check_log(view, log, successors, budget, raised) {
        // If the directory is missing, the next listing reports it.
        raised.mark_inconclusive(&log.origin);
        if !is_removed_or_replaced(&error) && !is_unreachable(&error) {
            raised.raise(
                FindingCode::Unreadable,
                &log.origin,
                &log.row.shard,
                error.to_string(),
            );
        }
    }
}

/// Returns whether a file was removed, or replaced on a server, while it was read.
pub(crate) fn is_removed_or_replaced(error: &EvidenceError) -> bool {
    matches!(error, EvidenceError::Io { source, .. }
        if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle))
}

fn try_check_log(
    view: &CheckContext<'_>,
    log: &mut Log,
    successors: &Successors,
    budget: &mut ReadBudget,
    raised: &mut RaisedFindings,
) -> Result<(), EvidenceError> {
    if removal::check_removal(view, log, raised)? {
        return Ok(());
    }
    log_statements::check_erasures(view, log, raised)?;
    match read_own_checkpoint(view, log, raised)? {
        OwnCheckpoint::Signed(signed, note) => compare_checkpoint(view, log, signed, &note, raised),
        OwnCheckpoint::Missing if log.max_signed_size() == 0 => {
            return check_unsigned(view, log, budget, raised);
        }
        OwnCheckpoint::Refused if log.row.head.is_none() => {
            budget.charge(&ReadBudget::for_unsigned());
            log.checked = true;
            return Ok(());
        }
        OwnCheckpoint::Missing | OwnCheckpoint::Refused => {}
    }
    if log.target.is_none() && !log.row.ended {
        for dir in &successors.dirs {
            read_successor_note(view, log, dir, raised)?;
        }
    }
    if log.row.head.is_some()
        && let Some(missing) = missing_files(view.storage, &log.dir, &log.row.point)?
    {
        raised.raise(FindingCode::Truncated, &log.origin, &log.row.shard, missing);
    }
    if log.target.is_some() {
        return advance(view, log, budget, raised);
    }
    if log.row.ended || successors.served {
        return Ok(());
    }
    match has_data_after(view.storage, &log.dir, &log.row.point)? {
        false => log.waiting_since = None,
        true => {
            let since = *log.waiting_since.get_or_insert(view.now);
            if view.now.saturating_sub(since) >= view.stall_timeout {
                let message = format!(
                    "the records after the first {} have waited for a checkpoint for {} seconds",
                    log.size(),
                    view.now.saturating_sub(since) / 1_000_000
                );
                raised.raise_confirmed(FindingCode::Stalled, &log.origin, &log.row.shard, message);
            }
        }
    }
    Ok(())
}

/// The state of a log's own checkpoint.
enum OwnCheckpoint {
    Signed(Checkpoint, String),
    /// The file is not a valid checkpoint of this log, and the problem was raised.
    Refused,
    Missing,
}

fn read_own_checkpoint(
    view: &CheckContext<'_>,
    log: &Log,
    raised: &mut RaisedFindings,
) -> Result<OwnCheckpoint, EvidenceError> {
    let mut raise = |code, message| raised.raise(code, &log.origin, &log.row.shard, message);
    let note = match checkpoint_file::read(view.storage, &log.dir) {
        Ok(Some(note)) => note,
        Ok(None) => {
            if log.max_signed_size() > 0 {
                let message = format!(
                    "the checkpoint, which covered {} records, is missing",
                    log.max_signed_size()
                );
                raise(FindingCode::CheckpointMissing, message);
            }
            return Ok(OwnCheckpoint::Missing);
        }
        Err(EvidenceError::Corruption { reason, .. }) => {
            raise(FindingCode::CheckpointRefused, reason);
            return Ok(OwnCheckpoint::Refused);
        }
        Err(error) => return Err(error),
    };
    match verify_checkpoint(view, &note, &log.origin) {
        Ok(signed) => Ok(OwnCheckpoint::Signed(signed, note)),
        Err((code, message)) => {
            raise(code, message);
            Ok(OwnCheckpoint::Refused)
        }
    }
}

fn verify_checkpoint(
    view: &CheckContext<'_>,
    note: &str,
    origin: &str,
) -> Result<Checkpoint, (FindingCode, String)> {
    if note.len() > MAX_NOTE_BYTES {
        return Err((
            FindingCode::CheckpointRefused,
            format!("the checkpoint is too long: {} bytes", note.len()),
        ));
    }
    let signed = Checkpoint::verify(note, view.key)
        .map_err(|error| (FindingCode::CheckpointRefused, error.to_string()))?;
    if signed.origin != origin {
        return Err((
            FindingCode::CheckpointForeign,
            format!("it is a checkpoint of another log, {}", signed.origin),
        ));
    }
    Ok(signed)
}

/// Compares the log's own checkpoint with the accepted checkpoint. A newer checkpoint becomes the
/// target.
fn compare_checkpoint(
    view: &CheckContext<'_>,
    log: &mut Log,
    signed: Checkpoint,
    note: &str,
    raised: &mut RaisedFindings,
) {
    let mut raise = |code, message| raised.raise(code, &log.origin, &log.row.shard, message);
    let size = log.size();
    if signed.size < log.max_signed_size() {
        let message = format!(
            "the checkpoint covers {} records, but an earlier checkpoint covered {} records",
            signed.size,
            log.max_signed_size()
        );
        return raise(FindingCode::Rollback, message);
    }
    let heads = [
        log.row.head.as_ref().map(|head| (head.size, head.root)),
        log.target
            .as_ref()
            .map(|target| (target.checkpoint.size, target.checkpoint.root)),
    ];
    if heads
        .into_iter()
        .flatten()
        .any(|(known, root)| known == signed.size && root != signed.root)
    {
        let message = format!("two different roots were signed for {} records", signed.size);
        return raise(FindingCode::Equivocation, message);
    }
    if signed.size <= size {
        return;
    }
    if log.row.facts.sealed {
        let message = format!(
            "it was sealed with {size} records, but a checkpoint covers {}",
            signed.size
        );
        return raise(FindingCode::SealedLogGrew, message);
    }
    if log.row.ended {
        let message = format!(
            "its successor recorded the end of this log with {size} records, but a checkpoint covers {}",
            signed.size
        );
        return raise(FindingCode::TwoWriters, message);
    }
    if log.target.is_none() {
        match strip_unknown_signatures(view, note, &log.origin) {
            Ok(note) => {
                log.set_target(TargetCheckpoint {
                    checkpoint: signed,
                    note,
                    first_seen: view.now,
                    is_own: true,
                });
            }
            Err((code, message)) => raise(code, message),
        }
    }
}

/// Makes a successor's note about the log's end the target, if it covers more than the log's own checkpoint.
fn read_successor_note(
    view: &CheckContext<'_>,
    log: &mut Log,
    dir: &Path,
    raised: &mut RaisedFindings,
) -> Result<(), EvidenceError> {
    let Some(note) = checkpoint_file::read_successor_note(view.storage, dir, log.row.incarnation)? else {
        return Ok(());
    };
    let believed =
        verify_checkpoint(view, &note, &log.origin).and_then(|signed| match signed.size > log.size() {
            true => Ok(Some((
                signed,
                strip_unknown_signatures(view, &note, &log.origin)?,
            ))),
            false => Ok(None),
        });
    match believed {
        Ok(Some((signed, note))) => {
            log.set_target(TargetCheckpoint {
                checkpoint: signed,
                note,
                first_seen: view.now,
                is_own: false,
            });
        }
        Ok(None) => {}
        Err((code, message)) => {
            let message = format!("the copy of this log's checkpoint in a later log is not valid: {message}");
            raised.raise(code, &log.origin, &log.row.shard, message);
        }
    }
    Ok(())
}

/// Reads towards the target, and accepts it when its root is reached.
fn advance(
    view: &CheckContext<'_>,
    log: &mut Log,
    budget: &mut ReadBudget,
    raised: &mut RaisedFindings,
) -> Result<(), EvidenceError> {
    let Some(target) = &log.target else { return Ok(()) };
    if view.now < log.retry_at {
        raised.mark_inconclusive(&log.origin);
        return Ok(());
    }
    let size = target.checkpoint.size;
    let tail = match &mut log.tail {
        Some(tail) => tail,
        none => none.insert(LogTail::resume_from(&log.row.point, log.row.facts.clone())?),
    };
    let step = tail.advance(view.storage, &log.dir, log.row.incarnation, size, budget)?;
    let (code, message) = match step {
        ReadProgress::Paused => {
            raised.mark_inconclusive(&log.origin);
            return Ok(());
        }
        ReadProgress::SizeReached if tail.root() == target.checkpoint.root => {
            let stated = tail.facts.origin.clone().unwrap_or_default();
            log.accept_target(view.now);
            if stated != log.origin {
                let message = format!("its first record names another log: {stated}");
                raised.raise(
                    FindingCode::CheckpointForeign,
                    &log.origin,
                    &log.row.shard,
                    message,
                );
            }
            return Ok(());
        }
        ReadProgress::SizeReached => (
            FindingCode::RecordsChanged,
            format!("the first {size} records do not hash to the signed root"),
        ),
        ReadProgress::EndedEarly => (
            FindingCode::Truncated,
            format!("{size} records were signed, but only {} are present", tail.size()),
        ),
        ReadProgress::Damaged(flaw) => (
            FindingCode::RecordsDamaged,
            format!(
                "{} at byte {}, record {}: {}",
                flaw.path.display(),
                flaw.offset,
                flaw.seq,
                flaw.reason
            ),
        ),
        ReadProgress::Refused(message) => (FindingCode::RecordsChanged, message),
    };
    if matches!(code, FindingCode::RecordsChanged) {
        // Any record since the head may be the wrong record, so all of them are read again.
        log.tail = None;
    }
    raised.raise(code, &log.origin, &log.row.shard, message);
    Ok(())
}

/// Pauses a log with a finding that its records do not verify.
pub(crate) fn back_off(log: &mut Log, now: u64) {
    if log.retry_at <= now {
        log.retry_at = now.saturating_add(RETRY_DELAY);
        log.tail = None;
    }
}

/// Checks a log without a checkpoint. A worker signs the start of a log before it serves, so an
/// unsigned log that served is not genuine. An unsigned log that did not serve is the result of an
/// interrupted start.
fn check_unsigned(
    view: &CheckContext<'_>,
    log: &mut Log,
    budget: &mut ReadBudget,
    raised: &mut RaisedFindings,
) -> Result<(), EvidenceError> {
    // Other unsigned logs wait for their turn. A log with a checkpoint never waits.
    if budget.is_exhausted() || view.now < log.retry_at {
        raised.mark_inconclusive(&log.origin);
        return Ok(());
    }
    let mut tail = LogTail::default();
    let mut own = ReadBudget::for_unsigned();
    let mut step = Ok(ReadProgress::SizeReached);
    for records in UNSIGNED_RECORDS {
        if tail.facts.served || !matches!(step, Ok(ReadProgress::SizeReached)) {
            break;
        }
        step = tail.advance(view.storage, &log.dir, log.row.incarnation, records, &mut own);
    }
    budget.charge(&own);
    let step = step?;
    log.checked = true;
    let foreign = matches!(step, ReadProgress::Damaged(_) | ReadProgress::Refused(_)) && tail.size() == 0;
    if tail.facts.served || foreign {
        let what = match foreign {
            true => "it contains bytes that are not a log of this incarnation",
            false => "it served requests",
        };
        let message = format!("the log has no checkpoint, but {what}");
        raised.raise(FindingCode::PlantedLog, &log.origin, &log.row.shard, message);
    } else {
        log.retry_at = view.now.saturating_add(RETRY_DELAY);
    }
    Ok(())
}

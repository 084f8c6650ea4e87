//! A look at one log: its checkpoint first, then its records up to that.

use crate::chain::Successors;
use crate::finding::{Code, Raised};
use crate::log::{Log, Target};
use crate::log_statements;
use crate::reach::is_away;
use crate::removal;
use crate::tail::{Budget, Step, Tail, is_written_behind, missing_files};
use crate::view::{MAX_NOTE, View, alone};
use proofgate_evidence::{EvidenceError, checkpoint_file};
use proofgate_ledger::Checkpoint;
use std::io;
use std::path::Path;

/// Of a log that nobody signed, so many records are read, step by step, to see whether it served.
const UNSIGNED_RECORDS: [u64; 4] = [2, 16, 256, 4096];
/// A log whose records do not verify, or that was never begun, is read again after this many microseconds.
pub(crate) const REST: u64 = 60_000_000;

/// Looks at a log; its `successors` may hold a note over its end.
pub(crate) fn look(
    view: &View<'_>,
    log: &mut Log,
    successors: &Successors,
    budget: &mut Budget,
    raised: &mut Raised,
) {
    if let Err(error) = try_look(view, log, successors, budget, raised) {
        // Of a directory that is gone the next listing tells.
        raised.unsettled(&log.origin);
        if !is_gone(&error) && !is_away(&error) {
            raised.raise(Code::Unreadable, &log.origin, &log.row.shard, error.to_string());
        }
    }
}

/// Whether something was removed, or replaced on a server, while it was read.
pub(crate) fn is_gone(error: &EvidenceError) -> bool {
    matches!(error, EvidenceError::Io { source, .. }
        if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle))
}

fn try_look(
    view: &View<'_>,
    log: &mut Log,
    successors: &Successors,
    budget: &mut Budget,
    raised: &mut Raised,
) -> Result<(), EvidenceError> {
    if removal::look(view, log, raised)? {
        return Ok(());
    }
    log_statements::look(view, log, raised)?;
    match read_own(view, log, raised)? {
        Own::Signed(signed, note) => compare(view, log, signed, &note, raised),
        Own::Missing if log.signed() == 0 => return look_at_unsigned(view, log, budget, raised),
        Own::Refused if log.row.head.is_none() => {
            budget.charge(&Budget::unsigned());
            log.looked = true;
            return Ok(());
        }
        Own::Missing | Own::Refused => {}
    }
    if log.target.is_none() && !log.row.ended {
        for dir in &successors.dirs {
            read_cover(view, log, dir, raised)?;
        }
    }
    if log.row.head.is_some()
        && let Some(missing) = missing_files(view.storage, &log.dir, &log.row.point)?
    {
        raised.raise(Code::Truncated, &log.origin, &log.row.shard, missing);
    }
    if log.target.is_some() {
        return advance(view, log, budget, raised);
    }
    if log.row.ended || successors.served {
        return Ok(());
    }
    match is_written_behind(view.storage, &log.dir, &log.row.point)? {
        false => log.waiting_since = None,
        true => {
            let since = *log.waiting_since.get_or_insert(view.now);
            if view.now.saturating_sub(since) >= view.stall {
                let message = format!(
                    "the records after the first {} have waited for a checkpoint for {} seconds",
                    log.size(),
                    view.now.saturating_sub(since) / 1_000_000
                );
                raised.raise_now(Code::Stalled, &log.origin, &log.row.shard, message);
            }
        }
    }
    Ok(())
}

/// What stands in the place of a log's own checkpoint.
enum Own {
    Signed(Checkpoint, String),
    /// None that is this log's; that was raised.
    Refused,
    Missing,
}

fn read_own(view: &View<'_>, log: &Log, raised: &mut Raised) -> Result<Own, EvidenceError> {
    let mut raise = |code, message| raised.raise(code, &log.origin, &log.row.shard, message);
    let note = match checkpoint_file::read(view.storage, &log.dir) {
        Ok(Some(note)) => note,
        Ok(None) => {
            if log.signed() > 0 {
                let message = format!(
                    "the checkpoint, which covered {} records, is missing",
                    log.signed()
                );
                raise(Code::CheckpointMissing, message);
            }
            return Ok(Own::Missing);
        }
        Err(EvidenceError::Corruption { reason, .. }) => {
            raise(Code::CheckpointRefused, reason);
            return Ok(Own::Refused);
        }
        Err(error) => return Err(error),
    };
    match believe(view, &note, &log.origin) {
        Ok(signed) => Ok(Own::Signed(signed, note)),
        Err((code, message)) => {
            raise(code, message);
            Ok(Own::Refused)
        }
    }
}

fn believe(view: &View<'_>, note: &str, origin: &str) -> Result<Checkpoint, (Code, String)> {
    if note.len() > MAX_NOTE {
        return Err((
            Code::CheckpointRefused,
            format!("the checkpoint is too long: {} bytes", note.len()),
        ));
    }
    let signed =
        Checkpoint::verify(note, view.key).map_err(|error| (Code::CheckpointRefused, error.to_string()))?;
    if signed.origin != origin {
        return Err((
            Code::CheckpointForeign,
            format!("it is a checkpoint of another log, {}", signed.origin),
        ));
    }
    Ok(signed)
}

/// Compares the log's own checkpoint with what was accepted before; a newer one becomes the target.
fn compare(view: &View<'_>, log: &mut Log, signed: Checkpoint, note: &str, raised: &mut Raised) {
    let mut raise = |code, message| raised.raise(code, &log.origin, &log.row.shard, message);
    let size = log.size();
    if signed.size < log.signed() {
        let message = format!(
            "the checkpoint covers {} records, but an earlier one covered {}",
            signed.size,
            log.signed()
        );
        return raise(Code::Rollback, message);
    }
    let heads = [
        log.row.head.as_ref().map(|head| (head.size, head.root)),
        log.target
            .as_ref()
            .map(|target| (target.signed.size, target.signed.root)),
    ];
    if heads
        .into_iter()
        .flatten()
        .any(|(known, root)| known == signed.size && root != signed.root)
    {
        let message = format!("two roots were signed at {} records", signed.size);
        return raise(Code::Equivocation, message);
    }
    if signed.size <= size {
        return;
    }
    if log.row.facts.sealed {
        let message = format!(
            "it was sealed with {size} records, but a checkpoint covers {}",
            signed.size
        );
        return raise(Code::SealedLogGrew, message);
    }
    if log.row.ended {
        let message = format!(
            "its successor recorded the end of this log with {size} records, but a checkpoint covers {}",
            signed.size
        );
        return raise(Code::TwoWriters, message);
    }
    if log.target.is_none() {
        match alone(view, note, &log.origin) {
            Ok(note) => {
                log.aim(Target {
                    signed,
                    note,
                    since: view.now,
                    own: true,
                });
            }
            Err((code, message)) => raise(code, message),
        }
    }
}

/// What a successor signed of a log's end becomes the target where it covers more than the log's own checkpoint.
fn read_cover(view: &View<'_>, log: &mut Log, dir: &Path, raised: &mut Raised) -> Result<(), EvidenceError> {
    let Some(note) = checkpoint_file::read_cover(view.storage, dir, log.row.incarnation)? else {
        return Ok(());
    };
    let believed = believe(view, &note, &log.origin).and_then(|signed| match signed.size > log.size() {
        true => Ok(Some((signed, alone(view, &note, &log.origin)?))),
        false => Ok(None),
    });
    match believed {
        Ok(Some((signed, note))) => {
            log.aim(Target {
                signed,
                note,
                since: view.now,
                own: false,
            });
        }
        Ok(None) => {}
        Err((code, message)) => {
            let message = format!("a successor's copy of this log's checkpoint: {message}");
            raised.raise(code, &log.origin, &log.row.shard, message);
        }
    }
    Ok(())
}

/// Reads towards the target, and accepts it when its root is reached.
fn advance(
    view: &View<'_>,
    log: &mut Log,
    budget: &mut Budget,
    raised: &mut Raised,
) -> Result<(), EvidenceError> {
    let Some(target) = &log.target else { return Ok(()) };
    if view.now < log.rests_until {
        raised.unsettled(&log.origin);
        return Ok(());
    }
    let size = target.signed.size;
    let tail = match &mut log.tail {
        Some(tail) => tail,
        none => none.insert(Tail::at(&log.row.point, log.row.facts.clone())?),
    };
    let step = tail.advance(view.storage, &log.dir, log.row.incarnation, size, budget)?;
    let (code, message) = match step {
        Step::Paused => {
            raised.unsettled(&log.origin);
            return Ok(());
        }
        Step::Reached if tail.root() == target.signed.root => {
            let stated = tail.facts.origin.clone().unwrap_or_default();
            log.accept(view.now);
            if stated != log.origin {
                let message = format!("its first record names another log: {stated}");
                raised.raise(Code::CheckpointForeign, &log.origin, &log.row.shard, message);
            }
            return Ok(());
        }
        Step::Reached => (
            Code::RecordsChanged,
            format!("the first {size} records do not hash to the signed root"),
        ),
        Step::Short => (
            Code::Truncated,
            format!("{size} records were signed, but only {} are there", tail.size()),
        ),
        Step::Flawed(flaw) => (
            Code::RecordsDamaged,
            format!(
                "{} at byte {}, record {}: {}",
                flaw.path.display(),
                flaw.offset,
                flaw.seq,
                flaw.reason
            ),
        ),
        Step::Refused(message) => (Code::RecordsChanged, message),
    };
    if matches!(code, Code::RecordsChanged) {
        // Any of the records since the head may be the one: all are read again.
        log.tail = None;
    }
    raised.raise(code, &log.origin, &log.row.shard, message);
    Ok(())
}

/// Lets a log alone for a while of which it was found that its records do not verify.
pub(crate) fn rest(log: &mut Log, now: u64) {
    if log.rests_until <= now {
        log.rests_until = now.saturating_add(REST);
        log.tail = None;
    }
}

/// A worker signs the beginning of a log before it serves; one that served and is not signed is nobody's. One that did not
/// serve is what a start leaves behind that was cut short.
fn look_at_unsigned(
    view: &View<'_>,
    log: &mut Log,
    budget: &mut Budget,
    raised: &mut Raised,
) -> Result<(), EvidenceError> {
    // Those behind wait for their turn. A log with a checkpoint never does.
    if budget.is_spent() || view.now < log.rests_until {
        raised.unsettled(&log.origin);
        return Ok(());
    }
    let mut tail = Tail::default();
    let mut own = Budget::unsigned();
    let mut step = Ok(Step::Reached);
    for records in UNSIGNED_RECORDS {
        if tail.facts.served || !matches!(step, Ok(Step::Reached)) {
            break;
        }
        step = tail.advance(view.storage, &log.dir, log.row.incarnation, records, &mut own);
    }
    budget.charge(&own);
    let step = step?;
    log.looked = true;
    let foreign = matches!(step, Step::Flawed(_) | Step::Refused(_)) && tail.size() == 0;
    if tail.facts.served || foreign {
        let what = match foreign {
            true => "contains bytes that are not a log of this incarnation",
            false => "served requests",
        };
        let message = format!("it {what}, but it has no checkpoint");
        raised.raise(Code::PlantedLog, &log.origin, &log.row.shard, message);
    } else {
        log.rests_until = view.now.saturating_add(REST);
    }
    Ok(())
}

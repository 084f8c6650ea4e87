//! The logs of a shard, each read from its first record, and why the content of a log may be
//! unknown. A writer of the volume without a key can replace records that no checkpoint covers, and
//! delete logs.

use crate::exchange_ends::{ExchangeEnds, SignedLog, referenced_logs};
use crate::reason::{RetentionReason, reason};
use crate::survey::{HoldCandidate, LogSurvey, survey_log};
use crate::{Hold, RetentionError, RetentionState};
use proofgate_evidence::layout::{Shard, parse_incarnation};
use proofgate_evidence::removal::{self, RemovalState, RemovedLog};
use proofgate_evidence::rules::{LogTracker, Predecessor};
use proofgate_evidence::{EvidenceError, ReadStorage, Ulid};
use proofgate_ledger::record::Record;
use proofgate_ledger::{Checkpoint, VerifyingKey};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A log of a shard.
pub(crate) struct Log {
    pub(crate) incarnation: Ulid,
    pub(crate) dir: PathBuf,
    pub(crate) presence: LogPresence,
}

pub(crate) enum LogPresence {
    /// The retention job has removed it.
    Removed(Box<RemovedLog>),
    /// It is present; if it has a tombstone, the reason why that is refused.
    Present(Box<LogSurvey>, Option<String>),
}

impl Log {
    /// Returns its state, if it was removed or has a verified checkpoint of its own.
    fn tracker(&self) -> Option<&LogTracker> {
        match &self.presence {
            LogPresence::Removed(removed) => Some(&removed.tracker),
            LogPresence::Present(read, _) => read.own_checkpoint.is_some().then_some(&read.tracker),
        }
    }

    /// Returns whether it was removed, or a checkpoint covers it.
    fn is_known(&self) -> bool {
        match &self.presence {
            LogPresence::Removed(_) => true,
            LogPresence::Present(read, _) => read.is_signed(),
        }
    }

    pub(crate) fn survey(&self) -> Option<&LogSurvey> {
        match &self.presence {
            LogPresence::Removed(_) => None,
            LogPresence::Present(read, _) => Some(read),
        }
    }
}

/// Maximum number of listings of a shard, for logs that were created while it was read. Each
/// listing finds fewer new logs.
const MAX_LISTINGS: usize = 64;

/// Reads the logs of a shard, oldest first, and then those that a worker creates meanwhile. `visit` is called once for
/// every record of a log that was not removed, with the log and the record's number.
pub(crate) fn read(
    storage: &dyn ReadStorage,
    shard: &Shard,
    (key, keeping): (&VerifyingKey, &VerifyingKey),
    holds: &[&Hold],
    visit: &mut dyn FnMut(Ulid, u64, &Record<'_>),
) -> Result<Vec<Log>, RetentionError> {
    let mut read_log = |incarnation: Ulid, seen: Option<&Checkpoint>| {
        let dir = shard.dir.join(incarnation.to_string());
        let mut there = |refused| {
            let mut visit = |seq, record: &Record<'_>| visit(incarnation, seq, record);
            let mut read = survey_log(storage, &dir, (incarnation, seen), key, holds, &mut visit)?;
            // All logs of a shard are in memory at once, and none of them is removed here, so this data is dropped.
            (read.tenants, read.retained_records) = (BTreeSet::new(), Vec::new());
            Ok::<_, RetentionError>(LogPresence::Present(Box::new(read), refused))
        };
        let is = match read_removal(storage, &dir, key, keeping)? {
            RemovalState::Done(removed) => LogPresence::Removed(removed),
            RemovalState::None => there(None)?,
            // A tombstone that is not signed by the retention key hides no log.
            RemovalState::Refused(refusal) => there(Some(refusal.reason))?,
        };
        Ok::<_, RetentionError>(Log {
            incarnation,
            dir,
            presence: is,
        })
    };
    let mut logs = Vec::with_capacity(shard.incarnations.len());
    let mut next = shard.incarnations.clone();
    for _ in 0..MAX_LISTINGS {
        for incarnation in next {
            logs.push(read_log(incarnation, None)?);
        }
        next = new_logs(storage, shard, &logs)?;
        if next.is_empty() {
            break;
        }
    }
    // Later logs show whether a log was extended.
    for at in (0..logs.len()).rev() {
        if let Some(seen) = end_if_extended(&logs, at) {
            logs[at] = read_log(logs[at].incarnation, Some(&seen))?;
        }
    }
    Ok(logs)
}

/// Returns the logs after the newest one that was read. The name of a new log sorts after all existing ones.
fn new_logs(storage: &dyn ReadStorage, shard: &Shard, logs: &[Log]) -> Result<Vec<Ulid>, RetentionError> {
    let Some(newest) = logs.last().filter(|_| !shard.single) else {
        return Ok(Vec::new());
    };
    let names = storage.list(&shard.dir);
    let names = names.map_err(EvidenceError::io("list", &shard.dir))?;
    let logs = names.iter().filter_map(|name| parse_incarnation(name));
    let mut since: Vec<Ulid> = logs.filter(|log| *log > newest.incarnation).collect();
    since.sort_unstable();
    Ok(since)
}

/// Returns the position up to which a log was read, if the log may have been extended since: it has
/// ended, but no checkpoint from that time covers it, or later logs state a larger size.
fn end_if_extended(logs: &[Log], at: usize) -> Option<Checkpoint> {
    let read = logs[at].survey().filter(|read| read.damage.is_none())?;
    let claims = collect_claims(
        logs[at].incarnation,
        logs[at + 1..].iter().filter_map(Log::tracker),
    );
    let ended = read.tracker.is_sealed() || claims.iter().any(|(_, ended)| *ended);
    let differs = contradiction(&claims, read.end.as_ref()).is_some();
    let may_have = differs || (ended && read.final_note.is_none());
    read.end.clone().filter(|_| may_have)
}

/// Reads the removal state of a log's directory.
pub(crate) fn read_removal(
    storage: &dyn ReadStorage,
    dir: &Path,
    key: &VerifyingKey,
    retention_key: &VerifyingKey,
) -> Result<RemovalState, RetentionError> {
    match removal::read(storage, dir, Some(key), Some(retention_key)) {
        Ok(removal) => Ok(removal),
        Err(error) => Ok(RemovalState::Refused(
            RetentionError::from(error).into_damage()?.into(),
        )),
    }
}

/// The state of a log among the others of its shard.
pub(crate) struct LogState {
    /// Whether it is sealed, or a later log has recorded its end.
    pub(crate) ended: bool,
    /// Why its current or former content is unknown.
    pub(crate) unknown_content_reasons: Vec<RetentionReason>,
}

/// Returns the state of the log at a position.
pub(crate) fn log_state(logs: &[Log], at: usize, key: &VerifyingKey) -> LogState {
    let LogPresence::Present(read, refused) = &logs[at].presence else {
        return LogState {
            ended: true,
            unknown_content_reasons: Vec::new(),
        };
    };
    let claims = collect_claims(
        logs[at].incarnation,
        logs[at + 1..].iter().filter_map(Log::tracker),
    );
    let newest = logs.iter().rposition(|log| log.tracker().is_some()) == Some(at);
    let mut standing = state_from_claims(read, &claims, newest, key);
    if let Some(why) = refused {
        let text = format!("its tombstone is refused: {why}: run fsck");
        standing
            .unknown_content_reasons
            .insert(0, reason("tombstone_refused", text));
    }
    standing
}

/// Returns the state of a log for which later ones make these claims. The newest records of a log
/// that is being written are not covered by a checkpoint yet. Any other log must be covered
/// completely.
pub(crate) fn state_from_claims(
    survey: &LogSurvey,
    claims: &[(Predecessor, bool)],
    is_newest: bool,
    key: &VerifyingKey,
) -> LogState {
    let mut doubts = Vec::new();
    let ended = survey.tracker.is_sealed() || claims.iter().any(|(_, ended)| *ended);
    // All other problems would follow from the damage.
    if let Some(damage) = &survey.damage {
        doubts.push(reason("damaged", format!("{damage}: run fsck")));
        return LogState {
            ended,
            unknown_content_reasons: doubts,
        };
    }
    let foreign = |end: &Checkpoint| key.for_origin(&end.origin).is_err();
    if survey.end.as_ref().is_some_and(foreign) {
        doubts.push(reason("damaged", "it is not a log of this ledger: run fsck"));
    }
    doubts.extend(contradiction(claims, survey.end.as_ref()));
    let is_written = !ended && survey.own_checkpoint.is_some() && (is_newest || !claims.is_empty());
    // A worker start that was interrupted before it was signed has served no request.
    let has_served = survey.own_checkpoint.is_some() || survey.tracker.first_served().is_some();
    if survey.final_note.is_none() && has_served && !is_written {
        doubts.push(reason(
            "uncovered",
            "no checkpoint by the ledger's key covers all of its records: run fsck",
        ));
    }
    LogState {
        ended,
        unknown_content_reasons: doubts,
    }
}

/// Returns where the exchanges of these logs ended, given the state of each log.
pub(crate) fn exchange_ends(logs: &[Log], standings: &[LogState]) -> ExchangeEnds {
    let known = logs.iter().zip(standings).filter(|(log, _)| log.is_known());
    ExchangeEnds::from_logs(known.map(|(log, standing)| SignedLog {
        incarnation: log.incarnation,
        tracker: log.tracker(),
        has_unknown_content: !standing.unknown_content_reasons.is_empty(),
    }))
}

/// Returns why logs that others name may have been deleted.
pub(crate) fn missing_log_reasons(logs: &[Log]) -> Vec<RetentionReason> {
    let known = logs.iter().filter(|log| log.is_known());
    let known: BTreeSet<Ulid> = known.map(|log| log.incarnation).collect();
    let mut why = Vec::new();
    for (log, rules) in logs.iter().filter_map(|log| Some((log, log.tracker()?))) {
        why.extend(referenced_logs(rules).difference(&known).map(|named| {
            let text = format!("{} names {named}, which is missing: run fsck", log.dir.display());
            reason("damaged", text)
        }));
    }
    why
}

/// Returns the statements of later logs about a log, each with whether it is about the log's end.
pub(crate) fn collect_claims<'r>(
    of: Ulid,
    later: impl Iterator<Item = &'r LogTracker>,
) -> Vec<(Predecessor, bool)> {
    let mut claims = Vec::new();
    for rules in later {
        let named = rules.opening().and_then(|opened| opened.predecessor);
        let named = named.filter(|named| named.incarnation == of);
        claims.extend(named.map(|named| (named, !named.running)));
        let ends = rules.takeovers().iter();
        claims.extend(
            ends.filter(|(_, ended)| ended.incarnation == of)
                .map(|(_, ended)| (*ended, true)),
        );
    }
    claims
}

/// Describes how the content of a log contradicts what later logs state.
pub(crate) fn contradiction(
    claims: &[(Predecessor, bool)],
    there: Option<&Checkpoint>,
) -> Option<RetentionReason> {
    let size = there.map_or(0, |end| end.size);
    let differs = |(said, ended): &&(Predecessor, bool)| match ended {
        true => there.is_none_or(|end| (said.size, said.root) != (end.size, end.root)),
        false => said.size > size,
    };
    let (said, _) = claims.iter().find(differs)?;
    let text = format!(
        "a later log says that this log had {} records, but this log has {size} records, or its records differ: run fsck",
        said.size
    );
    Some(reason("damaged", text))
}

/// Returns the ends of a log's exchanges in later logs to which holds may apply.
pub(crate) fn hold_candidates(of: Ulid, later: &[Log]) -> impl Iterator<Item = &HoldCandidate> {
    let ends = later
        .iter()
        .filter_map(Log::survey)
        .flat_map(|read| &read.hold_candidates);
    ends.filter(move |end| end.incarnation == of)
}

/// Returns the reasons of holds that retain the leftover files of a removed log. These holds were
/// placed after its tombstone was signed.
pub(crate) fn late_hold_reasons(retention: &RetentionState, removed: &RemovedLog) -> Vec<RetentionReason> {
    let since = retention
        .active_holds()
        .filter(|hold| hold.added >= removed.tombstone.removed_at);
    let since = since.map(|hold| {
        let text = format!("hold {} was added after its tombstone was signed", hold.id);
        reason("held", text)
    });
    since.collect()
}

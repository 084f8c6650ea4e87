//! The logs of a shard, each read from its beginning, and why of one nobody knows what it held. Whoever writes the volume
//! without a key can put others in the place of records that no checkpoint covers, and take logs away.

use crate::ends::{Ends, SignedLog, names};
use crate::reason::{Reason, reason};
use crate::survey::{HeldEnd, Survey, survey};
use crate::{Hold, KeepingError, RetentionState};
use proofgate_evidence::layout::{Shard, parse_incarnation};
use proofgate_evidence::removal::{self, Removal, Removed};
use proofgate_evidence::rules::{Predecessor, Rules};
use proofgate_evidence::{EvidenceError, ReadStorage, Ulid};
use proofgate_ledger::record::Record;
use proofgate_ledger::{Checkpoint, VerifyingKey};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A log of a shard.
pub(crate) struct Log {
    pub(crate) incarnation: Ulid,
    pub(crate) dir: PathBuf,
    pub(crate) is: Is,
}

pub(crate) enum Is {
    /// A retention job has removed it.
    Removed(Box<Removed>),
    /// It is there; and why its tombstone is refused, if it has one.
    There(Box<Survey>, Option<String>),
}

impl Log {
    /// What it says, where somebody has signed for it.
    fn rules(&self) -> Option<&Rules> {
        match &self.is {
            Is::Removed(removed) => Some(&removed.rules),
            Is::There(read, _) => read.own.is_some().then_some(&read.rules),
        }
    }

    /// Whether it was removed, or somebody has signed for it.
    fn is_known(&self) -> bool {
        match &self.is {
            Is::Removed(_) => true,
            Is::There(read, _) => read.is_signed(),
        }
    }

    pub(crate) fn read(&self) -> Option<&Survey> {
        match &self.is {
            Is::Removed(_) => None,
            Is::There(read, _) => Some(read),
        }
    }
}

/// How often a shard is listed for what came while it was read. What a worker begins meanwhile is less each time.
const LISTINGS: usize = 64;

/// Reads the logs of a shard, the oldest first, and then those that a worker begins while they are read; `visit` sees every
/// record of those that were not removed, once, with its log and its number.
pub(crate) fn read(
    storage: &dyn ReadStorage,
    shard: &Shard,
    (key, keeping): (&VerifyingKey, &VerifyingKey),
    holds: &[&Hold],
    visit: &mut dyn FnMut(Ulid, u64, &Record<'_>),
) -> Result<Vec<Log>, KeepingError> {
    let mut read_log = |incarnation: Ulid, seen: Option<&Checkpoint>| {
        let dir = shard.dir.join(incarnation.to_string());
        let mut there = |refused| {
            let mut visit = |seq, record: &Record<'_>| visit(incarnation, seq, record);
            let mut read = survey(storage, &dir, (incarnation, seen), key, holds, &mut visit)?;
            // All logs of a shard are kept at once, and none of them is removed by this.
            (read.tenants, read.stays) = (BTreeSet::new(), Vec::new());
            Ok::<_, KeepingError>(Is::There(Box::new(read), refused))
        };
        let is = match removal_of(storage, &dir, key, keeping)? {
            Removal::Done(removed) => Is::Removed(removed),
            Removal::None => there(None)?,
            // A tombstone that is not by the retention key hides no log.
            Removal::Refused(refusal) => there(Some(refusal.why))?,
        };
        Ok::<_, KeepingError>(Log { incarnation, dir, is })
    };
    let mut logs = Vec::with_capacity(shard.incarnations.len());
    let mut next = shard.incarnations.clone();
    for _ in 0..LISTINGS {
        for incarnation in next {
            logs.push(read_log(incarnation, None)?);
        }
        next = begun_since(storage, shard, &logs)?;
        if next.is_empty() {
            break;
        }
    }
    // A log is judged by those behind it.
    for at in (0..logs.len()).rev() {
        if let Some(seen) = gone_on(&logs, at) {
            logs[at] = read_log(logs[at].incarnation, Some(&seen))?;
        }
    }
    Ok(logs)
}

/// The logs behind the newest one that was read. One that is begun sorts behind all names that are there.
fn begun_since(storage: &dyn ReadStorage, shard: &Shard, logs: &[Log]) -> Result<Vec<Ulid>, KeepingError> {
    let Some(newest) = logs.last().filter(|_| !shard.alone) else {
        return Ok(Vec::new());
    };
    let names = storage.list(&shard.dir);
    let names = names.map_err(EvidenceError::io("list", &shard.dir))?;
    let logs = names.iter().filter_map(|name| parse_incarnation(name));
    let mut since: Vec<Ulid> = logs.filter(|log| *log > newest.incarnation).collect();
    since.sort_unstable();
    Ok(since)
}

/// How far a log was read that may have been written since: it has ended, and no checkpoint that was there covers it, or
/// later logs tell more of it.
fn gone_on(logs: &[Log], at: usize) -> Option<Checkpoint> {
    let read = logs[at].read().filter(|read| read.damage.is_none())?;
    let claims = claims(logs[at].incarnation, logs[at + 1..].iter().filter_map(Log::rules));
    let ended = read.rules.sealed() || claims.iter().any(|(_, ended)| *ended);
    let differs = contradiction(&claims, read.end.as_ref()).is_some();
    let may_have = differs || (ended && read.last.is_none());
    read.end.clone().filter(|_| may_have)
}

/// What a log's directory says of its removal.
pub(crate) fn removal_of(
    storage: &dyn ReadStorage,
    dir: &Path,
    key: &VerifyingKey,
    keeping: &VerifyingKey,
) -> Result<Removal, KeepingError> {
    match removal::read(storage, dir, Some(key), Some(keeping)) {
        Ok(removal) => Ok(removal),
        Err(error) => Ok(Removal::Refused(KeepingError::from(error).spoiled()?.into())),
    }
}

/// How a log stands among those of its shard.
pub(crate) struct LogState {
    /// It is sealed, or a later log has recorded its end.
    pub(crate) ended: bool,
    /// Why nobody knows what it holds, or held.
    pub(crate) doubts: Vec<Reason>,
}

/// How the log at a position stands.
pub(crate) fn standing(logs: &[Log], at: usize, key: &VerifyingKey) -> LogState {
    let Is::There(read, refused) = &logs[at].is else {
        return LogState {
            ended: true,
            doubts: Vec::new(),
        };
    };
    let claims = claims(logs[at].incarnation, logs[at + 1..].iter().filter_map(Log::rules));
    let newest = logs.iter().rposition(|log| log.rules().is_some()) == Some(at);
    let mut standing = standing_of(read, &claims, newest, key);
    if let Some(why) = refused {
        let text = format!("its tombstone is refused: {why}: run fsck");
        standing.doubts.insert(0, reason("tombstone_refused", text));
    }
    standing
}

/// How a log stands of which later ones make these claims. Of one that is still written, the newest records are under no
/// checkpoint yet; any other must be covered as a whole.
pub(crate) fn standing_of(
    read: &Survey,
    claims: &[(Predecessor, bool)],
    newest: bool,
    key: &VerifyingKey,
) -> LogState {
    let mut doubts = Vec::new();
    let ended = read.rules.sealed() || claims.iter().any(|(_, ended)| *ended);
    // All else would follow from it.
    if let Some(damage) = &read.damage {
        doubts.push(reason("damaged", format!("{damage}: run fsck")));
        return LogState { ended, doubts };
    }
    let foreign = |end: &Checkpoint| key.for_origin(&end.origin).is_err();
    if read.end.as_ref().is_some_and(foreign) {
        doubts.push(reason("damaged", "it is not a log of this ledger: run fsck"));
    }
    doubts.extend(contradiction(claims, read.end.as_ref()));
    let is_written = !ended && read.own.is_some() && (newest || !claims.is_empty());
    // A start that was cut short before it was signed has served nobody.
    let has_served = read.own.is_some() || read.rules.served().is_some();
    if read.last.is_none() && has_served && !is_written {
        doubts.push(reason(
            "uncovered",
            "no checkpoint by the ledger's key covers all of its records: run fsck",
        ));
    }
    LogState { ended, doubts }
}

/// Where the exchanges of these logs ended, of which these are known how they stand.
pub(crate) fn ends(logs: &[Log], standings: &[LogState]) -> Ends {
    let known = logs.iter().zip(standings).filter(|(log, _)| log.is_known());
    Ends::of(known.map(|(log, standing)| SignedLog {
        incarnation: log.incarnation,
        rules: log.rules(),
        is_doubtful: !standing.doubts.is_empty(),
    }))
}

/// Why logs which others name may have been taken away.
pub(crate) fn missing(logs: &[Log]) -> Vec<Reason> {
    let known = logs.iter().filter(|log| log.is_known());
    let known: BTreeSet<Ulid> = known.map(|log| log.incarnation).collect();
    let mut why = Vec::new();
    for (log, rules) in logs.iter().filter_map(|log| Some((log, log.rules()?))) {
        why.extend(names(rules).difference(&known).map(|named| {
            let text = format!("{} names {named}, which is missing: run fsck", log.dir.display());
            reason("damaged", text)
        }));
    }
    why
}

/// What later logs say of one, with whether it is of its end.
pub(crate) fn claims<'r>(of: Ulid, later: impl Iterator<Item = &'r Rules>) -> Vec<(Predecessor, bool)> {
    let mut claims = Vec::new();
    for rules in later {
        let named = rules.opened().and_then(|opened| opened.predecessor);
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

/// How what is there of a log is not what later logs say of it.
pub(crate) fn contradiction(claims: &[(Predecessor, bool)], there: Option<&Checkpoint>) -> Option<Reason> {
    let size = there.map_or(0, |end| end.size);
    let differs = |(said, ended): &&(Predecessor, bool)| match ended {
        true => there.is_none_or(|end| (said.size, said.root) != (end.size, end.root)),
        false => said.size > size,
    };
    let (said, _) = claims.iter().find(differs)?;
    let text = format!(
        "a later log says that this log had {} records, but it has {size} or different ones: run fsck",
        said.size
    );
    Some(reason("damaged", text))
}

/// The ends of a log's exchanges in later ones that holds may touch.
pub(crate) fn held_ends(of: Ulid, later: &[Log]) -> impl Iterator<Item = &HeldEnd> {
    let ends = later
        .iter()
        .filter_map(Log::read)
        .flat_map(|read| &read.held_ends);
    ends.filter(move |end| end.incarnation == of)
}

/// The holds that keep what is left of a removed log: they came after its tombstone was signed.
pub(crate) fn held_since(retention: &RetentionState, removed: &Removed) -> Vec<Reason> {
    let since = retention
        .active()
        .filter(|hold| hold.added >= removed.tombstone.removed);
    let since = since.map(|hold| {
        let text = format!("hold {} was added after its tombstone was signed", hold.id);
        reason("held", text)
    });
    since.collect()
}

//! Erasure: destroys the salts of admissions, so that their commitments can no longer be opened. A
//! statement about the destruction is signed first, so an interruption leaves an unfinished
//! erasure, which the next run repeats.

use crate::anchors::not_anchored_reason;
use crate::exchange_ends::ExchangeEnds;
use crate::lock::try_lock_log;
use crate::logs::{
    self, Log, LogPresence, LogState, exchange_ends, hold_candidates, late_hold_reasons, log_state,
};
use crate::policy::{RetentionPolicy, current_time, has_elapsed};
use crate::reason::{RetentionReason, damage_reason, reason};
use crate::salt_destruction::{are_zeroed, destroy_salts};
use crate::statements::write_hold_statements;
use crate::survey::{LogSurvey, exchange_id};
use crate::{Hold, RetentionError, RetentionState};
use proofgate_evidence::erasures::{self, ERASURES_FILE, MAX_ERASURES_BYTES};
use proofgate_evidence::layout::{incarnation_of, shards};
use proofgate_evidence::payloads::PAYLOADS_FILE;
use proofgate_evidence::removal::{RemovedLog, TEMPORARY_FILE};
use proofgate_evidence::salts::SALTS_FILE;
use proofgate_evidence::{EvidenceError, FoundRecord, ReadStorage, SearchMode, Ulid, find_records, prove};
use proofgate_ledger::record::{self, Record};
use proofgate_ledger::{Erasure, ErasureScope, Justification, MAX_STATEMENT_BYTES, SigningKey, VerifyingKey};
use proofgate_payloads::{is_punched, punch};
use proofgate_wal::{Storage, replace_file};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What to erase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErasureTarget {
    /// One exchange, by its request id.
    Exchange(String),
    /// All exchanges of a tenant up to a time, in unix microseconds.
    Tenant {
        /// Its name.
        name: String,
        /// The time; `None` for all exchanges so far.
        until: Option<u64>,
    },
}

/// The inputs of an erasure.
#[derive(Clone, Copy, Debug)]
pub struct ErasureRequest<'p> {
    /// The ledger's directory.
    pub ledger: &'p Path,
    /// The ledger's key.
    pub key: &'p VerifyingKey,
    /// The retention job's state, with the holds.
    pub retention: &'p RetentionState,
    /// What to erase.
    pub target: &'p ErasureTarget,
    /// How long records must be kept; `None` when that was overridden.
    pub policy: Option<&'p RetentionPolicy>,
    /// The requester of the erasure and the reason, for the signed statement.
    pub justification: &'p Justification,
    /// The current time in unix microseconds.
    pub now: u64,
    /// The instant of `now`, from which the time of signing is computed; `None` to use `now`
    /// itself.
    pub started_at: Option<Instant>,
}

/// What happens to the salts in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaltAction {
    /// They are destroyed.
    Erase,
    /// They were already destroyed, as signed.
    AlreadyErased,
    /// They are retained.
    Retain(Vec<RetentionReason>),
}

/// A log with admissions to erase.
#[derive(Clone, Debug)]
pub struct PlannedErasure {
    /// Its directory.
    pub dir: PathBuf,
    /// The name of its shard's directory.
    pub shard: String,
    /// Its incarnation.
    pub incarnation: Ulid,
    /// Number of its records.
    pub records: u64,
    /// Numbers of the affected admissions. Empty when they are unknown: the salts of such a log are retained.
    pub admissions: Vec<u64>,
    /// What happens to their salts.
    pub action: SaltAction,
    /// The statement to sign; `None` if it was signed before.
    statement: Option<Erasure>,
    /// Statements that were signed for them before.
    signed_notes: Vec<String>,
}

/// Plans the destruction of salts, in the order of shards and ages. Nothing is changed.
///
/// # Errors
/// [`RetentionError::InvalidRequest`] for an exchange that does not exist; [`RetentionError::Wal`] when the ledger cannot
/// be read.
pub fn plan_erasure(
    storage: &dyn ReadStorage,
    retention_key: &VerifyingKey,
    request: &ErasureRequest<'_>,
) -> Result<Vec<PlannedErasure>, RetentionError> {
    let exchange = match request.target {
        ErasureTarget::Exchange(id) => Some(locate(storage, request, id)?),
        ErasureTarget::Tenant { .. } => None,
    };
    let holds: Vec<&Hold> = request.retention.active_holds().collect();
    let mut planned = Vec::new();
    for mut shard in shards(storage, request.ledger)? {
        if let Some(located) = &exchange {
            // The logs of the exchange, and later logs, which may contain its end.
            let dirs = located.keys().filter(|dir| dir.parent() == Some(&shard.dir));
            let Some(first) = dirs.filter_map(|dir| incarnation_of(dir).ok()).min() else {
                continue;
            };
            shard.incarnations.retain(|log| *log >= first);
        }
        // For a single exchange, no other logs are checked for it.
        let begin = |log: Ulid| match &exchange {
            None => Some(AffectedAdmissions::default()),
            Some(at) => at
                .get(&shard.dir.join(log.to_string()))
                .map(AffectedAdmissions::from_admissions),
        };
        let mut concerned: BTreeMap<Ulid, Option<AffectedAdmissions>> = BTreeMap::new();
        let keys = (request.key, retention_key);
        let logs = logs::read(storage, &shard, keys, &holds, &mut |log, seq, record| {
            if let Some(concerned) = concerned.entry(log).or_insert_with(|| begin(log)) {
                concerned.process(seq, record, request, &holds);
            }
        })?;
        let standings: Vec<LogState> = (0..logs.len())
            .map(|at| log_state(&logs, at, request.key))
            .collect();
        let ends = exchange_ends(&logs, &standings);
        for (at, standing) in standings.into_iter().enumerate() {
            let log = logs[at].incarnation;
            if let Some(concerned) = concerned.remove(&log).unwrap_or_else(|| begin(log)) {
                let about = (concerned, standing);
                planned.extend(plan_log(
                    storage,
                    retention_key,
                    request,
                    (&logs, at, &ends),
                    about,
                )?);
            }
        }
    }
    Ok(planned)
}

/// Plans and carries out an erasure; also finishes an interrupted one. Returns the plan as it was carried out.
///
/// # Errors
/// The errors of [`plan_erasure`]; [`RetentionError::StateCorrupt`] and
/// [`RetentionError::InvalidKey`] when the state does not belong to this ledger and this key.
pub fn erase(
    storage: &dyn Storage,
    request: &ErasureRequest<'_>,
    signing_key: &SigningKey,
) -> Result<Vec<PlannedErasure>, RetentionError> {
    let now = current_time(request.now, request.started_at);
    write_hold_statements(
        storage,
        request.ledger,
        request.key,
        request.retention,
        signing_key,
        now,
    )?;
    let mut planned = plan_erasure(storage, &signing_key.verifying_key(), request)?;
    for log in planned.iter_mut().filter(|log| log.action == SaltAction::Erase) {
        let spoiled = match execute(storage, request, log, signing_key) {
            Ok(None) => continue,
            Ok(Some(why)) => why,
            Err(error) => damage_reason(error)?,
        };
        log.action = SaltAction::Retain(vec![spoiled]);
    }
    Ok(planned)
}

/// Carries out the plan for a log, or returns why its salts are retained.
fn execute(
    storage: &dyn Storage,
    request: &ErasureRequest<'_>,
    log: &PlannedErasure,
    signing_key: &SigningKey,
) -> Result<Option<RetentionReason>, RetentionError> {
    let _lock = match try_lock_log(storage, &log.dir)? {
        Ok(lock) => lock,
        Err(why) => return Ok(Some(why)),
    };
    let mut signed = log.signed_notes.clone();
    if let Some(statement) = &log.statement {
        let statement = Erasure {
            time: current_time(request.now, request.started_at),
            ..statement.clone()
        };
        signed = vec![write_statement(storage, &log.dir, &statement, signing_key)?];
    }
    if let Some(anchors) = request.retention.anchors()
        && !signed.iter().any(|note| anchors.contains(note))
    {
        return Ok(Some(not_anchored_reason(signed.last().map(String::as_str))));
    }
    destroy_salts(storage, &log.dir, &log.admissions)?;
    punch(storage, &log.dir, &log.admissions)?;
    Ok(None)
}

type LocatedAdmissions = BTreeMap<PathBuf, BTreeSet<u64>>;

/// Returns the admissions of an exchange, or the record of a denied request. If a record found by time is not covered by a
/// signed checkpoint, everything is searched.
fn locate(
    storage: &dyn ReadStorage,
    request: &ErasureRequest<'_>,
    id: &str,
) -> Result<LocatedAdmissions, RetentionError> {
    let is_proved = |one: &FoundRecord| {
        prove::proof_for_record(storage, &one.dir, one.seq, &one.record, Some(request.key)).is_ok()
    };
    let mut found = find_records(storage, request.ledger, id, SearchMode::ByTime)?;
    if found.is_empty() || !found.iter().all(is_proved) {
        found = find_records(storage, request.ledger, id, SearchMode::Scan)?;
    }
    let mut located = LocatedAdmissions::new();
    for one in found {
        if record::parse(&one.record).is_ok_and(|record| record.committed_request().is_some()) {
            located.entry(one.dir).or_default().insert(one.seq);
        }
    }
    if located.is_empty() {
        return Err(RetentionError::InvalidRequest(format!(
            "the ledger contains no admission of {id}"
        )));
    }
    match located.values().all(|admissions| admissions.len() == 1) {
        true => Ok(located),
        false => Err(RetentionError::InvalidRequest(format!(
            "a log contains several admissions of {id}: run fsck"
        ))),
    }
}

/// The affected admissions of a log.
#[derive(Default)]
struct AffectedAdmissions {
    /// Numbers of the admissions, in order. They use most of a plan's memory.
    admissions: Vec<u64>,
    /// The tenant of all these admissions.
    tenant: String,
    /// The last admission that must still be retained, and for how many days.
    too_young: Option<(u64, u64)>,
    /// An admission with a time in the future.
    future: Option<u64>,
    held_by: BTreeSet<u64>,
}

impl AffectedAdmissions {
    /// Creates the set from the admissions that are known to be affected.
    fn from_admissions(wanted: &BTreeSet<u64>) -> Self {
        Self {
            admissions: wanted.iter().copied().collect(),
            ..Self::default()
        }
    }

    fn add(&mut self, seq: u64) {
        // Doubling the vector would waste as much memory again.
        if self.admissions.len() == self.admissions.capacity() {
            self.admissions.reserve_exact(self.admissions.len() / 8 + 64);
        }
        self.admissions.push(seq);
    }

    fn contains(&self, admission: u64) -> bool {
        self.admissions.binary_search(&admission).is_ok()
    }

    /// Processes a record, which may belong to an affected exchange.
    fn process(&mut self, seq: u64, record: &Record<'_>, request: &ErasureRequest<'_>, holds: &[&Hold]) {
        let committed = record.committed_request();
        if let (ErasureTarget::Tenant { name, until }, Some(committed)) = (request.target, committed)
            && committed.tenant == *name
        {
            match until {
                None if committed.ts > request.now => self.future = Some(seq),
                Some(until) if committed.ts > *until => {}
                _ => self.add(seq),
            }
        }
        let admission = match record {
            Record::Admission(_) | Record::Rejection(_) if self.contains(seq) => {
                let Some(committed) = committed else { return };
                committed.tenant.clone_into(&mut self.tenant);
                if committed.ts > request.now {
                    self.future = Some(seq);
                }
                let minimum = request.policy.map(|policy| policy.days_for(&self.tenant));
                let young = minimum.filter(|minimum| !has_elapsed(*minimum, record.ts(), request.now));
                self.too_young = young.map(|minimum| (seq, minimum)).or(self.too_young);
                seq
            }
            Record::Attempt(attempt) if attempt.incarnation.is_none() => attempt.admission,
            Record::Completion(completion) if completion.incarnation.is_none() => completion.admission,
            Record::Analysis(analysis) if analysis.incarnation.is_none() => analysis.admission,
            _ => return,
        };
        if self.contains(admission) {
            let id = exchange_id(record);
            let touching = holds
                .iter()
                .filter(|hold| hold.scope.matches(Some(&self.tenant), id, record.ts()));
            self.held_by.extend(touching.map(|hold| hold.id));
        }
    }
}

impl PlannedErasure {
    /// Creates the entry of a log while its affected admissions are unknown.
    fn for_log(log: &Log, fate: SaltAction) -> Self {
        let records = match &log.presence {
            LogPresence::Removed(removed) => removed.tombstone.size,
            LogPresence::Present(read, _) => read.end.as_ref().map_or(0, |end| end.size),
        };
        let shard = log.dir.parent().and_then(Path::file_name);
        Self {
            dir: log.dir.clone(),
            shard: shard.unwrap_or_default().to_string_lossy().into_owned(),
            incarnation: log.incarnation,
            records,
            admissions: Vec::new(),
            action: fate,
            statement: None,
            signed_notes: Vec::new(),
        }
    }
}

/// Plans what happens to the salts in a log; `None` when the log has nothing to erase.
fn plan_log(
    storage: &dyn ReadStorage,
    retention_key: &VerifyingKey,
    request: &ErasureRequest<'_>,
    (logs, at, ends): (&[Log], usize, &ExchangeEnds),
    (mut concerned, standing): (AffectedAdmissions, LogState),
) -> Result<Option<PlannedErasure>, RetentionError> {
    let log = &logs[at];
    let read = match &log.presence {
        LogPresence::Removed(removed) => {
            let why = leftover_reasons(request.retention, removed);
            return Ok(why.map(|why| PlannedErasure::for_log(log, SaltAction::Retain(why))));
        }
        LogPresence::Present(read, _) => read,
    };
    let LogState {
        ended,
        unknown_content_reasons: mut why,
    } = standing;
    why.extend(concerned.future.map(|seq| {
        let text = format!("record {seq} is dated in the future: a clock was or is wrong, and the date of the erasure also comes from a clock. You can give an earlier --until");
        reason("future", text)
    }));
    if concerned.admissions.is_empty() {
        // A log with unknown content may contain the exchange.
        let stays = !why.is_empty();
        return Ok(stays.then(|| PlannedErasure::for_log(log, SaltAction::Retain(why))));
    }
    let admissions = &concerned.admissions;
    let done = match PriorErasure::read(storage, retention_key, request.target, (log, read), admissions) {
        Ok(done) => done,
        Err(error) => {
            why.push(damage_reason(error)?);
            PriorErasure::default()
        }
    };
    let is_certain = why.is_empty();
    if !ended {
        let text = "the log is still being written: its worker has the salts in memory and closes the log when it drains or rotates it";
        why.push(reason("not_ended", text));
    }
    let held = hold_candidates(log.incarnation, &logs[at + 1..]).filter(|end| {
        concerned.contains(end.admission)
            && end.find_hold(request.retention.active_holds(), Some(&concerned.tenant))
    });
    let held: BTreeSet<u64> = held.map(|end| end.hold).collect();
    concerned.held_by.extend(held);
    why.extend(concerned.held_by.iter().map(|id| {
        let text = format!("hold {id} covers data that is to be erased");
        reason("held", text)
    }));
    let others = request.retention.active_holds();
    let others = others.filter(|hold| !concerned.held_by.contains(&hold.id));
    why.extend(ends.hold_reasons(log.incarnation, read, |seq| concerned.contains(seq), others));
    why.extend(concerned.too_young.map(|(seq, minimum)| {
        let text =
            format!("record {seq} must be kept for {minimum} days, and --override-minimum was not given");
        reason("young", text)
    }));
    if !done.is_stated && done.is_full {
        let text = format!(
            "the log's file of erasures has no space for another statement: its maximum is {MAX_ERASURES_BYTES} bytes"
        );
        why.push(reason("damaged", text));
    }
    let fate = match (why.is_empty(), is_certain && done.is_stated && done.is_zeroed) {
        (_, true) => SaltAction::AlreadyErased,
        (true, false) => SaltAction::Erase,
        (false, false) => SaltAction::Retain(why),
    };
    let erased = match request.target {
        ErasureTarget::Exchange(_) => admissions.first().map(|seq| ErasureScope::Single(*seq)),
        ErasureTarget::Tenant { name, until } => Some(ErasureScope::Tenant {
            name: name.clone(),
            until: until.unwrap_or(request.now),
        }),
    };
    let end = read.end.as_ref();
    let statement = erased
        .zip(end)
        .filter(|_| !done.is_stated)
        .map(|(erased, end)| Erasure {
            origin: end.origin.clone(),
            size: end.size,
            time: request.now,
            exchanges: admissions.len() as u64,
            scope: erased,
            justification: request.justification.clone(),
        });
    Ok(Some(PlannedErasure {
        admissions: concerned.admissions,
        statement,
        signed_notes: done.signed_notes,
        ..PlannedErasure::for_log(log, fate)
    }))
}

/// Returns why the leftover files of a removed log are retained; `None` if none of them reveals
/// anything.
fn leftover_reasons(retention: &RetentionState, removed: &RemovedLog) -> Option<Vec<RetentionReason>> {
    let tells = |name: &String| name == SALTS_FILE || name == PAYLOADS_FILE;
    if !removed.leftover_files.iter().any(tells) {
        return None;
    }
    let held = late_hold_reasons(retention, removed);
    let unfinished = || {
        let text = "the log was removed, but its salts remain: run prune again to finish";
        vec![reason("removal_unfinished", text)]
    };
    Some(if held.is_empty() { unfinished() } else { held })
}

/// The state of an earlier erasure.
#[derive(Default)]
struct PriorErasure {
    /// Whether a statement of this erasure was signed.
    is_stated: bool,
    /// The notes with that statement.
    signed_notes: Vec<String>,
    /// Whether the salts and bodies are destroyed.
    is_zeroed: bool,
    /// Whether the log's file of statements is full.
    is_full: bool,
}

impl PriorErasure {
    fn read(
        storage: &dyn ReadStorage,
        keeping: &VerifyingKey,
        what: &ErasureTarget,
        (log, read): (&Log, &LogSurvey),
        admissions: &[u64],
    ) -> Result<Self, RetentionError> {
        let text = erasures::read_text(storage, &log.dir)?;
        let signed = read
            .end
            .iter()
            .flat_map(|end| erasures::read(&text, &end.origin, end.size, keeping));
        let says_so = |erasure: &Erasure| match (what, &erasure.scope) {
            (ErasureTarget::Exchange(_), ErasureScope::Single(seq)) => admissions == [*seq],
            // A tenant's erasure up to one time also covers that of an earlier time, if it covers as many admissions or
            // more. So an erasure that is requested every night is signed once.
            (ErasureTarget::Tenant { name, .. }, ErasureScope::Tenant { name: of, .. }) => {
                name == of && erasure.exchanges >= admissions.len() as u64
            }
            _ => false,
        };
        let notes = erasures::notes(&text).into_iter().zip(signed);
        let notes = notes.filter(|(_, erasure)| erasure.as_ref().is_ok_and(says_so));
        let signed: Vec<String> = notes.map(|(note, _)| note.to_owned()).collect();
        Ok(Self {
            is_stated: !signed.is_empty(),
            signed_notes: signed,
            is_zeroed: are_zeroed(storage, &log.dir, admissions)?
                && is_punched(storage, &log.dir, admissions)?,
            is_full: text.len() as u64 + MAX_STATEMENT_BYTES as u64 > MAX_ERASURES_BYTES,
        })
    }
}

/// Appends the statement of what will be destroyed to the earlier ones.
fn write_statement(
    storage: &dyn Storage,
    dir: &Path,
    statement: &Erasure,
    signing_key: &SigningKey,
) -> Result<String, RetentionError> {
    let mut text = erasures::read_text(storage, dir)?;
    let note = statement.sign(signing_key)?;
    text.push_str(&note);
    if text.len() as u64 > MAX_ERASURES_BYTES {
        let why = format!(
            "{} has no space for another statement: its maximum is {MAX_ERASURES_BYTES} bytes",
            dir.join(ERASURES_FILE).display()
        );
        return Err(RetentionError::InvalidRequest(why));
    }
    let directory = storage.open_dir(dir).map_err(EvidenceError::io("open", dir))?;
    replace_file(
        storage,
        &*directory,
        dir,
        (TEMPORARY_FILE, ERASURES_FILE),
        text.as_bytes(),
    )?;
    Ok(note)
}

//! Erasure: the salts of admissions are destroyed, so that their commitments tell nothing any more. What is to be destroyed
//! is signed first: whatever cuts this short leaves an erasure that is not finished, and that is done again.

use crate::anchors::not_anchored;
use crate::ends::Ends;
use crate::lock::lock;
use crate::logs::{self, Is, Log, LogState, ends, held_ends, held_since, standing};
use crate::policy::{Policy, at, is_over};
use crate::reason::{Reason, damaged, reason};
use crate::statements::state_holds;
use crate::survey::{Survey, exchange_of};
use crate::zeros::{are_zero, destroy};
use crate::{Hold, KeepingError, RetentionState};
use proofgate_evidence::erasures::{self, ERASURES, MAX_ERASURES};
use proofgate_evidence::layout::{incarnation_of, shards};
use proofgate_evidence::payloads::PAYLOADS;
use proofgate_evidence::removal::{Removed, TEMPORARY};
use proofgate_evidence::salts::SALTS;
use proofgate_evidence::{EvidenceError, FoundRecord, ReadStorage, Search, Ulid, find, prove};
use proofgate_ledger::record::{self, Record};
use proofgate_ledger::{Erased, Erasure, Justification, MAX_STATEMENT, SigningKey, VerifyingKey};
use proofgate_payloads::{is_punched, punch};
use proofgate_wal::{Storage, replace_file};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What is to be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// An exchange, by its request id.
    Exchange(String),
    /// All exchanges of a tenant up to a time, in unix microseconds.
    Tenant {
        /// Its name.
        name: String,
        /// The time; `None` for all so far.
        until: Option<u64>,
    },
}

/// What an erasure is made of.
#[derive(Clone, Copy, Debug)]
pub struct Request<'p> {
    /// The ledger's directory.
    pub ledger: &'p Path,
    /// The ledger's key.
    pub key: &'p VerifyingKey,
    /// The holds.
    pub retention: &'p RetentionState,
    /// What is to be forgotten.
    pub what: &'p Forgotten,
    /// How long records must be kept; `None` where that was overridden.
    pub policy: Option<&'p Policy>,
    /// Who asked for it, and why, for what is signed.
    pub why: &'p Justification,
    /// In unix microseconds.
    pub now: u64,
    /// When `now` was, so that what is signed says when that was done; `None` for `now`.
    pub begun: Option<Instant>,
}

/// What is to become of the salts in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaltFate {
    /// They are destroyed.
    Erase,
    /// They were before, as was signed.
    Erased,
    /// They stay.
    Stay(Vec<Reason>),
}

/// A log that holds something of what is to be forgotten.
#[derive(Clone, Debug)]
pub struct PlannedErasure {
    /// Its directory.
    pub dir: PathBuf,
    /// The name of its shard's directory.
    pub shard: String,
    /// Its incarnation.
    pub incarnation: Ulid,
    /// Its records.
    pub records: u64,
    /// Numbers of the admissions concerned. None where nobody knows which they are: such a log stays.
    pub admissions: Vec<u64>,
    /// What is to become of their salts.
    pub fate: SaltFate,
    /// What is signed; `None` where it was before.
    statement: Option<Erasure>,
    /// What was signed of it before.
    signed: Vec<String>,
}

/// Plans what is destroyed, by shard and age. Nothing is changed.
///
/// # Errors
/// [`KeepingError::Invalid`] for an exchange that is not there; [`KeepingError::Wal`] when the ledger cannot be read.
pub fn plan_erasure(
    storage: &dyn ReadStorage,
    keeping: &VerifyingKey,
    request: &Request<'_>,
) -> Result<Vec<PlannedErasure>, KeepingError> {
    let exchange = match request.what {
        Forgotten::Exchange(id) => Some(locate(storage, request, id)?),
        Forgotten::Tenant { .. } => None,
    };
    let holds: Vec<&Hold> = request.retention.active().collect();
    let mut planned = Vec::new();
    for mut shard in shards(storage, request.ledger)? {
        if let Some(located) = &exchange {
            // Its logs, and those behind them, which tell of their ends.
            let dirs = located.keys().filter(|dir| dir.parent() == Some(&shard.dir));
            let Some(first) = dirs.filter_map(|dir| incarnation_of(dir).ok()).min() else {
                continue;
            };
            shard.incarnations.retain(|log| *log >= first);
        }
        // Of an exchange, no other logs than those are asked for it.
        let begin = |log: Ulid| match &exchange {
            None => Some(Concerned::default()),
            Some(at) => at.get(&shard.dir.join(log.to_string())).map(Concerned::of),
        };
        let mut concerned: BTreeMap<Ulid, Option<Concerned>> = BTreeMap::new();
        let keys = (request.key, keeping);
        let logs = logs::read(storage, &shard, keys, &holds, &mut |log, seq, record| {
            if let Some(concerned) = concerned.entry(log).or_insert_with(|| begin(log)) {
                concerned.take(seq, record, request, &holds);
            }
        })?;
        let standings: Vec<LogState> = (0..logs.len())
            .map(|at| standing(&logs, at, request.key))
            .collect();
        let ends = ends(&logs, &standings);
        for (at, standing) in standings.into_iter().enumerate() {
            let log = logs[at].incarnation;
            if let Some(concerned) = concerned.remove(&log).unwrap_or_else(|| begin(log)) {
                let about = (concerned, standing);
                planned.extend(plan_log(storage, keeping, request, (&logs, at, &ends), about)?);
            }
        }
    }
    Ok(planned)
}

/// Plans, and destroys; what was cut short before is finished. Returns the plan as it was carried out.
///
/// # Errors
/// As [`plan_erasure`]; [`KeepingError::StateCorrupt`] and [`KeepingError::Key`] when the state is not of this ledger and
/// this key.
pub fn erase(
    storage: &dyn Storage,
    request: &Request<'_>,
    signing: &SigningKey,
) -> Result<Vec<PlannedErasure>, KeepingError> {
    let now = at(request.now, request.begun);
    state_holds(
        storage,
        request.ledger,
        request.key,
        request.retention,
        signing,
        now,
    )?;
    let mut planned = plan_erasure(storage, &signing.verifying_key(), request)?;
    for log in planned.iter_mut().filter(|log| log.fate == SaltFate::Erase) {
        let spoiled = match carry_out(storage, request, log, signing) {
            Ok(None) => continue,
            Ok(Some(why)) => why,
            Err(error) => damaged(error)?,
        };
        log.fate = SaltFate::Stay(vec![spoiled]);
    }
    Ok(planned)
}

/// Destroys what is planned of a log; or says why it stays.
fn carry_out(
    storage: &dyn Storage,
    request: &Request<'_>,
    log: &PlannedErasure,
    signing: &SigningKey,
) -> Result<Option<Reason>, KeepingError> {
    let _lock = match lock(storage, &log.dir)? {
        Ok(lock) => lock,
        Err(why) => return Ok(Some(why)),
    };
    let mut signed = log.signed.clone();
    if let Some(statement) = &log.statement {
        let statement = Erasure {
            time: at(request.now, request.begun),
            ..statement.clone()
        };
        signed = vec![state(storage, &log.dir, &statement, signing)?];
    }
    if let Some(anchors) = request.retention.anchors()
        && !signed.iter().any(|note| anchors.has(note))
    {
        return Ok(Some(not_anchored(signed.last().map(String::as_str))));
    }
    destroy(storage, &log.dir, &log.admissions)?;
    punch(storage, &log.dir, &log.admissions)?;
    Ok(None)
}

type Located = BTreeMap<PathBuf, BTreeSet<u64>>;

/// Where the admissions of an exchange stand, or the record of a denied request. What nobody has signed is not taken for all that there is.
fn locate(storage: &dyn ReadStorage, request: &Request<'_>, id: &str) -> Result<Located, KeepingError> {
    let is_proved = |one: &FoundRecord| {
        prove::proof_of(storage, &one.dir, one.seq, &one.record, Some(request.key)).is_ok()
    };
    let mut found = find(storage, request.ledger, id, Search::ByTime)?;
    if found.is_empty() || !found.iter().all(is_proved) {
        found = find(storage, request.ledger, id, Search::Scan)?;
    }
    let mut located = Located::new();
    for one in found {
        if record::parse(&one.record).is_ok_and(|record| record.committed_request().is_some()) {
            located.entry(one.dir).or_default().insert(one.seq);
        }
    }
    if located.is_empty() {
        return Err(KeepingError::Invalid(format!(
            "the ledger contains no admission of {id}"
        )));
    }
    match located.values().all(|admissions| admissions.len() == 1) {
        true => Ok(located),
        false => Err(KeepingError::Invalid(format!(
            "a log contains several admissions of {id}: run fsck"
        ))),
    }
}

/// What a log holds of what is to be forgotten.
#[derive(Default)]
struct Concerned {
    /// In order, as they are the most of what is kept of a ledger at once.
    admissions: Vec<u64>,
    /// Whose they are: all of them are of one tenant.
    tenant: String,
    /// The youngest of them that must still be kept, and for how many days.
    young: Option<(u64, u64)>,
    /// One that is of the future.
    ahead: Option<u64>,
    held_by: BTreeSet<u64>,
}

impl Concerned {
    /// Begins with the admissions that are known to be concerned.
    fn of(wanted: &BTreeSet<u64>) -> Self {
        Self {
            admissions: wanted.iter().copied().collect(),
            ..Self::default()
        }
    }

    fn add(&mut self, seq: u64) {
        // A vector that doubles would keep as much again for nothing.
        if self.admissions.len() == self.admissions.capacity() {
            self.admissions.reserve_exact(self.admissions.len() / 8 + 64);
        }
        self.admissions.push(seq);
    }

    fn has(&self, admission: u64) -> bool {
        self.admissions.binary_search(&admission).is_ok()
    }

    /// Takes a record, which may be of an exchange that is concerned.
    fn take(&mut self, seq: u64, record: &Record<'_>, request: &Request<'_>, holds: &[&Hold]) {
        let committed = record.committed_request();
        if let (Forgotten::Tenant { name, until }, Some(committed)) = (request.what, committed)
            && committed.tenant == *name
        {
            match until {
                None if committed.ts > request.now => self.ahead = Some(seq),
                Some(until) if committed.ts > *until => {}
                _ => self.add(seq),
            }
        }
        let admission = match record {
            Record::Admission(_) | Record::Rejection(_) if self.has(seq) => {
                let Some(committed) = committed else { return };
                committed.tenant.clone_into(&mut self.tenant);
                if committed.ts > request.now {
                    self.ahead = Some(seq);
                }
                let minimum = request.policy.map(|policy| policy.of(&self.tenant));
                let young = minimum.filter(|minimum| !is_over(*minimum, record.ts(), request.now));
                self.young = young.map(|minimum| (seq, minimum)).or(self.young);
                seq
            }
            Record::Attempt(attempt) if attempt.incarnation.is_none() => attempt.admission,
            Record::Completion(completion) if completion.incarnation.is_none() => completion.admission,
            Record::Analysis(analysis) if analysis.incarnation.is_none() => analysis.admission,
            _ => return,
        };
        if self.has(admission) {
            let id = exchange_of(record);
            let touching = holds
                .iter()
                .filter(|hold| hold.scope.touches(Some(&self.tenant), id, record.ts()));
            self.held_by.extend(touching.map(|hold| hold.id));
        }
    }
}

impl PlannedErasure {
    /// Of a log, while nothing is known of its admissions.
    fn of(log: &Log, fate: SaltFate) -> Self {
        let records = match &log.is {
            Is::Removed(removed) => removed.tombstone.size,
            Is::There(read, _) => read.end.as_ref().map_or(0, |end| end.size),
        };
        let shard = log.dir.parent().and_then(Path::file_name);
        Self {
            dir: log.dir.clone(),
            shard: shard.unwrap_or_default().to_string_lossy().into_owned(),
            incarnation: log.incarnation,
            records,
            admissions: Vec::new(),
            fate,
            statement: None,
            signed: Vec::new(),
        }
    }
}

/// What is to become of the salts in a log; `None` where it holds nothing that is concerned.
fn plan_log(
    storage: &dyn ReadStorage,
    keeping: &VerifyingKey,
    request: &Request<'_>,
    (logs, at, ends): (&[Log], usize, &Ends),
    (mut concerned, standing): (Concerned, LogState),
) -> Result<Option<PlannedErasure>, KeepingError> {
    let log = &logs[at];
    let read = match &log.is {
        Is::Removed(removed) => {
            let why = left_of(request.retention, removed);
            return Ok(why.map(|why| PlannedErasure::of(log, SaltFate::Stay(why))));
        }
        Is::There(read, _) => read,
    };
    let LogState {
        ended,
        doubts: mut why,
    } = standing;
    why.extend(concerned.ahead.map(|seq| {
        let text = format!("record {seq} is dated in the future: a clock was or is wrong, and the erasure is dated by a clock too. You can give an earlier --until");
        reason("future", text)
    }));
    if concerned.admissions.is_empty() {
        // Where nobody knows what a log held, it may have been that.
        let stays = !why.is_empty();
        return Ok(stays.then(|| PlannedErasure::of(log, SaltFate::Stay(why))));
    }
    let admissions = &concerned.admissions;
    let done = match Done::read(storage, keeping, request.what, (log, read), admissions) {
        Ok(done) => done,
        Err(error) => {
            why.push(damaged(error)?);
            Done::default()
        }
    };
    let is_certain = why.is_empty();
    if !ended {
        let text = "the log is still being written: its worker has the salts in memory and closes the log when it drains or rotates it";
        why.push(reason("not_ended", text));
    }
    let held = held_ends(log.incarnation, &logs[at + 1..]).filter(|end| {
        concerned.has(end.admission) && end.is_held(request.retention.active(), Some(&concerned.tenant))
    });
    let held: BTreeSet<u64> = held.map(|end| end.hold).collect();
    concerned.held_by.extend(held);
    why.extend(concerned.held_by.iter().map(|id| {
        let text = format!("hold {id} covers data that is to be erased");
        reason("held", text)
    }));
    let others = request.retention.active();
    let others = others.filter(|hold| !concerned.held_by.contains(&hold.id));
    why.extend(ends.may_be_held(log.incarnation, read, |seq| concerned.has(seq), others));
    why.extend(concerned.young.map(|(seq, minimum)| {
        let text =
            format!("record {seq} must be kept for {minimum} days, and --override-minimum was not given");
        reason("young", text)
    }));
    if !done.stated && done.is_full {
        let text = format!("{ERASURES} is full: at most {MAX_ERASURES} bytes of it are read");
        why.push(reason("damaged", text));
    }
    let fate = match (why.is_empty(), is_certain && done.stated && done.zero) {
        (_, true) => SaltFate::Erased,
        (true, false) => SaltFate::Erase,
        (false, false) => SaltFate::Stay(why),
    };
    let erased = match request.what {
        Forgotten::Exchange(_) => admissions.first().map(|seq| Erased::One(*seq)),
        Forgotten::Tenant { name, until } => Some(Erased::Tenant {
            name: name.clone(),
            until: until.unwrap_or(request.now),
        }),
    };
    let end = read.end.as_ref();
    let statement = erased
        .zip(end)
        .filter(|_| !done.stated)
        .map(|(erased, end)| Erasure {
            origin: end.origin.clone(),
            size: end.size,
            time: request.now,
            exchanges: admissions.len() as u64,
            erased,
            why: request.why.clone(),
        });
    Ok(Some(PlannedErasure {
        admissions: concerned.admissions,
        statement,
        signed: done.signed,
        ..PlannedErasure::of(log, fate)
    }))
}

/// Why what is left of a removed log stays; `None` where nothing is left that tells anything.
fn left_of(retention: &RetentionState, removed: &Removed) -> Option<Vec<Reason>> {
    let tells = |name: &String| name == SALTS || name == PAYLOADS;
    if !removed.remains.iter().any(tells) {
        return None;
    }
    let held = held_since(retention, removed);
    let unfinished = || {
        let text = "it was removed, but its salts are left: run prune again to finish";
        vec![reason("removal_unfinished", text)]
    };
    Some(if held.is_empty() { unfinished() } else { held })
}

/// What was done before.
#[derive(Default)]
struct Done {
    /// It was signed that these are erased.
    stated: bool,
    /// The notes that say so.
    signed: Vec<String>,
    /// Nothing is left of them.
    zero: bool,
    /// No more can be signed of the log.
    is_full: bool,
}

impl Done {
    fn read(
        storage: &dyn ReadStorage,
        keeping: &VerifyingKey,
        what: &Forgotten,
        (log, read): (&Log, &Survey),
        admissions: &[u64],
    ) -> Result<Self, KeepingError> {
        let text = erasures::read_text(storage, &log.dir)?;
        let signed = read
            .end
            .iter()
            .flat_map(|end| erasures::read(&text, &end.origin, end.size, keeping));
        let says_so = |erasure: &Erasure| match (what, &erasure.erased) {
            (Forgotten::Exchange(_), Erased::One(seq)) => admissions == [*seq],
            // Of a tenant, what is of a time is also of every later one: as many are the same, or more. So an erasure that is
            // asked for each night is signed once.
            (Forgotten::Tenant { name, .. }, Erased::Tenant { name: of, .. }) => {
                name == of && erasure.exchanges >= admissions.len() as u64
            }
            _ => false,
        };
        let notes = erasures::notes(&text).into_iter().zip(signed);
        let notes = notes.filter(|(_, erasure)| erasure.as_ref().is_ok_and(says_so));
        let signed: Vec<String> = notes.map(|(note, _)| note.to_owned()).collect();
        Ok(Self {
            stated: !signed.is_empty(),
            signed,
            zero: are_zero(storage, &log.dir, admissions)? && is_punched(storage, &log.dir, admissions)?,
            is_full: text.len() as u64 + MAX_STATEMENT as u64 > MAX_ERASURES,
        })
    }
}

/// Writes what is to be destroyed, behind what was written before.
fn state(
    storage: &dyn Storage,
    dir: &Path,
    statement: &Erasure,
    signing: &SigningKey,
) -> Result<String, KeepingError> {
    let mut text = erasures::read_text(storage, dir)?;
    let note = statement.sign(signing)?;
    text.push_str(&note);
    if text.len() as u64 > MAX_ERASURES {
        let why = format!(
            "{} is full: at most {MAX_ERASURES} bytes of it are read",
            dir.join(ERASURES).display()
        );
        return Err(KeepingError::Invalid(why));
    }
    let directory = storage.open_dir(dir).map_err(EvidenceError::io("open", dir))?;
    replace_file(storage, &*directory, dir, (TEMPORARY, ERASURES), text.as_bytes())?;
    Ok(note)
}

//! Erasure: the salts of admissions are destroyed, so that their commitments tell nothing any more. What is to be destroyed
//! is signed first: whatever cuts this short leaves an erasure that is not finished, and that is done again.

use crate::plan::{Reason, reason};
use crate::policy::{Policy, is_over};
use crate::remove::lock;
use crate::survey::{Survey, survey};
use crate::{Hold, Keeper, KeepingError};
use proofgate_evidence::erasures::{self, ERASURES, MAX_ERASURES};
use proofgate_evidence::layout::{Shard, parse_incarnation, shards};
use proofgate_evidence::log_reader::{Found, LogReader};
use proofgate_evidence::removal::{TEMPORARY, read_tombstone};
use proofgate_evidence::salts::{SALT, SALTS};
use proofgate_evidence::{EvidenceError, ReadStorage, Search, Ulid, find, read_full};
use proofgate_ledger::record::{self, Record};
use proofgate_ledger::{Erased, Erasure, SigningKey, VerifyingKey};
use proofgate_payloads::{is_punched, punch};
use proofgate_wal::{Storage, StoredFile, replace_file};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// A later log tells of the one before within its first records.
const BEGINNING: u64 = 64;
/// Salts that are zeroed in one call.
const AT_ONCE: usize = 4096;

/// What is to be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// An exchange, by its request id.
    Exchange(String),
    /// All exchanges of a tenant up to a time, in unix microseconds.
    Tenant {
        /// Its name.
        name: String,
        /// The time.
        until: u64,
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
    pub keeper: &'p Keeper,
    /// What is to be forgotten.
    pub what: &'p Forgotten,
    /// How long records must be kept; `None` where that was overridden.
    pub policy: Option<&'p Policy>,
    /// Why, for what is signed.
    pub reason: &'p str,
    /// In unix microseconds.
    pub now: u64,
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
    /// Numbers of the admissions concerned.
    pub admissions: Vec<u64>,
    /// What is to become of their salts.
    pub fate: SaltFate,
    /// What is signed; `None` where it was before.
    statement: Option<Erasure>,
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
        Forgotten::Exchange(id) => Some(locate(storage, request.ledger, id)?),
        Forgotten::Tenant { .. } => None,
    };
    let mut planned = Vec::new();
    for shard in shards(storage, request.ledger)? {
        for incarnation in &shard.incarnations {
            let dir = shard.dir.join(incarnation.to_string());
            let wanted = exchange.as_ref().map(|at| at.get(&dir));
            if wanted == Some(None) || read_tombstone(storage, &dir)?.is_some() {
                continue;
            }
            let log = (&shard, *incarnation);
            planned.extend(plan_log(storage, keeping, request, log, wanted.flatten())?);
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
    request.keeper.require(request.key, signing)?;
    let mut planned = plan_erasure(storage, &signing.verifying_key(), request)?;
    for log in planned.iter_mut().filter(|log| log.fate == SaltFate::Erase) {
        let Some(_lock) = lock(storage, &log.dir)? else {
            let text = "a worker that lives holds the lock on its salts";
            log.fate = SaltFate::Stay(vec![reason("locked", text)]);
            continue;
        };
        if let Some(statement) = &log.statement {
            state(storage, &log.dir, statement, signing)?;
        }
        destroy(storage, &log.dir, &log.admissions)?;
        punch(storage, &log.dir, &log.admissions)?;
    }
    Ok(planned)
}

type Located = BTreeMap<PathBuf, BTreeSet<u64>>;

/// Where the admissions of an exchange stand.
fn locate(storage: &dyn ReadStorage, ledger: &Path, id: &str) -> Result<Located, KeepingError> {
    let mut found = find(storage, ledger, id, Search::ByTime)?;
    if found.is_empty() {
        found = find(storage, ledger, id, Search::Scan)?;
    }
    let mut located = Located::new();
    for one in found {
        if let Ok(Record::Admission(_)) = record::parse(&one.record) {
            located.entry(one.dir).or_default().insert(one.seq);
        }
    }
    if located.is_empty() {
        return Err(KeepingError::Invalid(format!(
            "the ledger holds no admission of {id}"
        )));
    }
    match located.values().all(|admissions| admissions.len() == 1) {
        true => Ok(located),
        false => Err(KeepingError::Invalid(format!(
            "a log holds several admissions of {id}: run fsck"
        ))),
    }
}

/// What a log holds of what is to be forgotten.
struct Concerned {
    admissions: BTreeSet<u64>,
    /// Whose they are: all of them are of one tenant.
    tenant: String,
    /// The youngest of them that must still be kept, and for how many days.
    young: Option<(u64, u64)>,
    held_by: BTreeSet<u64>,
}

impl Concerned {
    /// Takes a record, which may be of an exchange that is concerned.
    fn take(&mut self, seq: u64, record: &Record<'_>, request: &Request<'_>, holds: &[&Hold]) {
        let admission = match record {
            Record::Admission(admission) if self.admissions.contains(&seq) => {
                admission.tenant.as_ref().clone_into(&mut self.tenant);
                let minimum = request.policy.map(|policy| policy.of(&self.tenant));
                let young = minimum.filter(|minimum| !is_over(*minimum, record.ts(), request.now));
                self.young = young.map(|minimum| (seq, minimum)).or(self.young);
                seq
            }
            Record::Attempt(attempt) if attempt.incarnation.is_none() => attempt.admission,
            Record::Completion(completion) if completion.incarnation.is_none() => completion.admission,
            _ => return,
        };
        if self.admissions.contains(&admission) {
            let touching = holds
                .iter()
                .filter(|hold| hold.scope.touches(Some(&self.tenant), record.id(), record.ts()));
            self.held_by.extend(touching.map(|hold| hold.id));
        }
    }
}

fn plan_log(
    storage: &dyn ReadStorage,
    keeping: &VerifyingKey,
    request: &Request<'_>,
    (shard, incarnation): (&Shard, Ulid),
    wanted: Option<&BTreeSet<u64>>,
) -> Result<Option<PlannedErasure>, KeepingError> {
    let dir = shard.dir.join(incarnation.to_string());
    let holds: Vec<&Hold> = request.keeper.active().collect();
    let mut concerned = Concerned {
        admissions: wanted.cloned().unwrap_or_default(),
        tenant: String::new(),
        young: None,
        held_by: BTreeSet::new(),
    };
    let read = survey(
        storage,
        &dir,
        incarnation,
        request.key,
        &[],
        &mut |seq, record| {
            if let (Forgotten::Tenant { name, until }, Record::Admission(admission)) = (request.what, record)
                && admission.tenant == *name
                && admission.ts <= *until
            {
                concerned.admissions.insert(seq);
            }
            concerned.take(seq, record, request, &holds);
        },
    )?;
    if concerned.admissions.is_empty() {
        return Ok(None);
    }
    let mut why = refusals(storage, request, shard, incarnation, &read)?;
    why.extend(concerned.held_by.iter().map(|id| {
        let text = format!("hold {id} touches what is to be erased");
        reason("held", text)
    }));
    why.extend(concerned.young.map(|(seq, minimum)| {
        let text =
            format!("record {seq} must be kept for {minimum} days, and --override-minimum was not given");
        reason("young", text)
    }));
    let (origin, records) = read
        .end
        .as_ref()
        .map_or((String::new(), 0), |end| (end.origin.clone(), end.size));
    let admissions: Vec<u64> = concerned.admissions.into_iter().collect();
    let (stated, refused) = stated(
        storage,
        keeping,
        request.what,
        (&dir, &origin, records),
        &admissions,
    )?;
    why.extend(refused);
    let zero = are_zero(storage, &dir, &admissions)? && is_punched(storage, &dir, &admissions)?;
    let fate = match (why.is_empty(), stated && zero) {
        (_, true) => SaltFate::Erased,
        (true, false) => SaltFate::Erase,
        (false, false) => SaltFate::Stay(why),
    };
    let erased = match request.what {
        Forgotten::Exchange(_) => admissions.first().map(|seq| Erased::One(*seq)),
        Forgotten::Tenant { name, until } => Some(Erased::Tenant {
            name: name.clone(),
            until: *until,
        }),
    };
    let statement = erased.filter(|_| !stated).map(|erased| Erasure {
        origin,
        size: records,
        time: request.now,
        exchanges: admissions.len() as u64,
        erased,
        reason: request.reason.to_owned(),
    });
    Ok(Some(PlannedErasure {
        dir,
        shard: shard
            .dir
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        incarnation,
        records,
        admissions,
        fate,
        statement,
    }))
}

/// Why nothing of a log is erased, whatever it is: it is still written, or not what it should be.
fn refusals(
    storage: &dyn ReadStorage,
    request: &Request<'_>,
    shard: &Shard,
    incarnation: Ulid,
    read: &Survey,
) -> Result<Vec<Reason>, KeepingError> {
    let mut why = Vec::new();
    if let Some(damage) = &read.damage {
        why.push(reason("damaged", format!("{damage}: run fsck")));
    }
    let below = |origin: &str| request.key.for_origin(origin).is_ok();
    if read.end.as_ref().is_none_or(|end| !below(&end.origin)) {
        why.push(reason("damaged", "it is no log of this ledger: run fsck"));
    }
    if !read.rules.sealed() && !is_ended(storage, shard, incarnation)? {
        let text = "it is still written: its worker has the salts in memory, and ends it when it is drained or rotates its log";
        why.push(reason("not_ended", text));
    }
    Ok(why)
}

/// Whether a later log says that this one has ended.
fn is_ended(storage: &dyn ReadStorage, shard: &Shard, of: Ulid) -> Result<bool, KeepingError> {
    for later in shard.incarnations.iter().filter(|later| **later > of) {
        let dir = shard.dir.join(later.to_string());
        let mut log = LogReader::open(storage, &dir, *later)?;
        while let Found::Record(stored) = log.next()? {
            if stored.seq >= BEGINNING {
                break;
            }
            let named = match record::parse(log.payload(&stored)) {
                Ok(Record::Open(open)) => open
                    .predecessor
                    .filter(|named| !named.running)
                    .map(|named| named.incarnation.to_string()),
                Ok(Record::Takeover(takeover)) => Some(takeover.incarnation.to_string()),
                _ => None,
            };
            if named.and_then(|named| parse_incarnation(&named)) == Some(of) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether it was signed before that these are erased; and why what was signed cannot be gone on with.
fn stated(
    storage: &dyn ReadStorage,
    keeping: &VerifyingKey,
    what: &Forgotten,
    (dir, origin, records): (&Path, &str, u64),
    admissions: &[u64],
) -> Result<(bool, Option<Reason>), KeepingError> {
    let text = match erasures::read_text(storage, dir) {
        Ok(text) => text,
        Err(EvidenceError::Corruption { reason: why, .. }) => {
            return Ok((
                false,
                Some(reason("damaged", format!("{ERASURES}: {why}: run fsck"))),
            ));
        }
        Err(error) => return Err(error.into()),
    };
    let signed = erasures::read(&text, origin, records, keeping);
    let mut signed = signed.into_iter().flatten();
    let stated = signed.any(|erasure| match (what, &erasure.erased) {
        (Forgotten::Exchange(_), Erased::One(seq)) => admissions == [*seq],
        // Of a tenant, what is of a time is also of every later one: as many are the same, or more. So an erasure that is
        // asked for each night is signed once.
        (Forgotten::Tenant { name, .. }, Erased::Tenant { name: of, .. }) => {
            name == of && erasure.exchanges >= admissions.len() as u64
        }
        _ => false,
    });
    Ok((stated, None))
}

fn are_zero(storage: &dyn ReadStorage, dir: &Path, admissions: &[u64]) -> Result<bool, KeepingError> {
    let path = dir.join(SALTS);
    let file = match storage.open(&path) {
        Ok(file) => file,
        // What is not there tells nothing.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(EvidenceError::io("open", &path)(error).into()),
    };
    for seq in admissions {
        let mut salt = [0; SALT];
        let offset = seq.saturating_mul(SALT as u64);
        read_full(&*file, &mut salt, offset).map_err(EvidenceError::io("read", &path))?;
        if salt != [0; SALT] {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes what is to be destroyed, behind what was written before.
fn state(
    storage: &dyn Storage,
    dir: &Path,
    statement: &Erasure,
    signing: &SigningKey,
) -> Result<(), KeepingError> {
    let mut text = erasures::read_text(storage, dir)?;
    text.push_str(&statement.sign(signing)?);
    if text.len() as u64 > MAX_ERASURES {
        let why = format!(
            "{} is full: no more than {MAX_ERASURES} bytes are read of it",
            dir.join(ERASURES).display()
        );
        return Err(KeepingError::Invalid(why));
    }
    let directory = storage.open_dir(dir).map_err(EvidenceError::io("open", dir))?;
    replace_file(storage, &*directory, dir, (TEMPORARY, ERASURES), text.as_bytes())?;
    Ok(())
}

/// Overwrites the salts of these admissions, in order, with zeros.
fn destroy(storage: &dyn Storage, dir: &Path, admissions: &[u64]) -> Result<(), KeepingError> {
    let path = dir.join(SALTS);
    let file = match storage.open_writable(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(EvidenceError::io("open", &path)(error).into()),
    };
    let length = file.len().map_err(EvidenceError::io("stat", &path))?;
    let mut rest = admissions;
    while let Some(first) = rest.first().copied() {
        let run = rest
            .iter()
            .zip(first..)
            .take(AT_ONCE)
            .take_while(|(seq, expected)| *seq == expected)
            .count();
        let offset = first.saturating_mul(SALT as u64);
        // Never longer than it is: what was not there is not there.
        let bytes = (run * SALT).min(usize::try_from(length.saturating_sub(offset)).unwrap_or(usize::MAX));
        zero(&*file, offset, bytes).map_err(EvidenceError::io("write", &path))?;
        rest = &rest[run..];
    }
    file.sync().map_err(EvidenceError::io("sync", &path))?;
    Ok(())
}

fn zero(file: &dyn StoredFile, offset: u64, bytes: usize) -> io::Result<()> {
    let zeros = vec![0; bytes];
    let mut done = 0;
    while done < bytes {
        match file.write_at(&zeros[done..], offset + done as u64)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => done += written,
        }
    }
    Ok(())
}

//! Which logs may go, and why the others stay. Nothing is changed here.

mod later_logs;

use crate::ends::Ends;
use crate::hold::Hold;
use crate::logs::{claims, contradiction, held_since, removal_of};
use crate::policy::{Policy, ago_ms, is_over};
use crate::reason::{Reason, damaged, ends_kept, reason};
use crate::survey::{HeldEnd, Survey, survey};
use crate::{KeepingError, RetentionState};
use proofgate_evidence::layout::{Shard, shards};
use proofgate_evidence::removal::{
    self, Removal, consistency_name, consistency_text, proof_name, record_name,
};
use proofgate_evidence::rules::{Predecessor, Rules};
use proofgate_evidence::{
    EvidenceError, HeldCheckpoint, ReadStorage, Ulid, checkpoint_file, consistency, prove,
};
use proofgate_ledger::{Checkpoint, Hash, Justification, TlogProof, Tombstone, VerifyingKey, leaf_hash};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A worker that starts reads the newest log of its shard, and asks for the one before.
const STAY_FOR_RECOVERY: usize = 2;
/// How many logs behind one are asked how it ended.
const SUCCESSORS: usize = 2;

/// What a plan is made of.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'p> {
    /// The ledger's directory.
    pub ledger: &'p Path,
    /// The ledger's key.
    pub key: &'p VerifyingKey,
    /// The retention key.
    pub keeping: &'p VerifyingKey,
    /// The holds.
    pub retention: &'p RetentionState,
    /// How long records must be kept.
    pub policy: &'p Policy,
    /// Who lets logs go, and why, for their tombstones.
    pub why: &'p Justification,
    /// Checkpoints that somebody holds: that they are of a log stays provable when it goes.
    pub held: &'p [HeldCheckpoint],
    /// In unix microseconds.
    pub now: u64,
    /// When `now` was, so that a tombstone says when it was signed; `None` for `now`.
    pub begun: Option<Instant>,
}

/// A log that may go: its tombstone, not signed yet, and the files that stay of it, by name.
#[derive(Clone, Debug)]
pub struct Removable {
    /// What is to be signed.
    pub tombstone: Tombstone,
    /// What is written before.
    pub files: Vec<(String, Vec<u8>)>,
    /// Logs of whose exchanges it holds ends: it goes after them.
    pub(crate) ends_of: BTreeSet<Ulid>,
}

/// What is to become of a log.
#[derive(Clone, Debug)]
pub enum Fate {
    /// It may go.
    Remove(Box<Removable>),
    /// It has its tombstone, and these files of it are left.
    Finish(Vec<String>),
    /// It is gone.
    Removed,
    /// It stays.
    Stay(Vec<Reason>),
}

/// A log, and what is to become of it.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Its directory.
    pub dir: PathBuf,
    /// The name of its shard's directory.
    pub shard: String,
    /// Its incarnation.
    pub incarnation: Ulid,
    /// Its records, where it was read.
    pub records: u64,
    /// Its admissions, where it was read.
    pub exchanges: u64,
    /// Bytes of its records, where it was read.
    pub bytes: u64,
    /// Time of its newest record in unix microseconds, where it was read.
    pub newest: u64,
    /// What is to become of it.
    pub fate: Fate,
}

/// Plans what may go of a ledger, by shard and age. Logs that may be old enough are read, and verified, from their
/// beginning.
///
/// # Errors
/// [`KeepingError::Wal`] when the ledger cannot be read.
pub fn plan(storage: &dyn ReadStorage, plan: &Plan<'_>) -> Result<Vec<Planned>, KeepingError> {
    let mut planned = Vec::new();
    for shard in shards(storage, plan.ledger)? {
        if shard.alone {
            return Err(KeepingError::Invalid(
                "give the directory of the ledger or of a shard: a single log does not show which log follows it".to_owned(),
            ));
        }
        planned.extend(ShardPlan::read(storage, plan, &shard)?.decide()?);
    }
    Ok(planned)
}

/// What is known of a log.
enum Known {
    /// It was removed.
    Removed(Box<removal::Removed>),
    /// Its tombstone is refused, and why; what is not signed either may be no log at all.
    Refused(String, Signed),
    /// Nobody has signed it.
    Unsigned,
    /// It is too young, or needed, whatever it holds.
    Unread,
    Read(Box<Survey>),
}

/// Whether the ledger's key has signed a log's checkpoint.
enum Signed {
    Yes,
    No,
}

impl Signed {
    fn read(storage: &dyn ReadStorage, dir: &Path, key: &VerifyingKey) -> Result<Self, KeepingError> {
        let note = match checkpoint_file::read(storage, dir) {
            Ok(note) => note,
            Err(error) => {
                KeepingError::from(error).spoiled()?;
                None
            }
        };
        match note.is_some_and(|note| Checkpoint::verify(&note, key).is_ok()) {
            true => Ok(Self::Yes),
            false => Ok(Self::No),
        }
    }
}

impl Known {
    fn rules(&self) -> Option<&Rules> {
        match self {
            Self::Removed(removed) => Some(&removed.rules),
            Self::Read(survey) => Some(&survey.rules),
            Self::Refused(..) | Self::Unsigned | Self::Unread => None,
        }
    }

    fn survey(&self) -> Option<&Survey> {
        match self {
            Self::Read(survey) => Some(survey),
            _ => None,
        }
    }
}

struct ShardPlan<'p> {
    storage: &'p dyn ReadStorage,
    plan: &'p Plan<'p>,
    shard: &'p Shard,
    name: String,
    logs: Vec<(Ulid, Known)>,
    /// Positions of the newest logs, which recovery needs.
    newest: BTreeSet<usize>,
    ends: Ends,
}

impl<'p> ShardPlan<'p> {
    fn read(
        storage: &'p dyn ReadStorage,
        plan: &'p Plan<'p>,
        shard: &'p Shard,
    ) -> Result<Self, KeepingError> {
        let name = shard.dir.file_name().and_then(|name| name.to_str());
        let mut logs = Vec::with_capacity(shard.incarnations.len());
        for incarnation in &shard.incarnations {
            let dir = shard.dir.join(incarnation.to_string());
            let known = match removal_of(storage, &dir, plan.key, plan.keeping)? {
                Removal::Done(removed) => Known::Removed(removed),
                Removal::Refused(refusal) => {
                    Known::Refused(refusal.why, Signed::read(storage, &dir, plan.key)?)
                }
                Removal::None => match checkpoint_file::read(storage, &dir) {
                    Ok(None) => Known::Unsigned,
                    Ok(Some(_)) => Known::Unread,
                    Err(error) => {
                        KeepingError::from(error).spoiled()?;
                        Known::Unread
                    }
                },
            };
            logs.push((*incarnation, known));
        }
        let signed = logs.iter().enumerate();
        let signed: Vec<usize> = signed
            // What has a tombstone that is refused may be no log at all.
            .filter(|(_, (_, known))| !matches!(known, Known::Unsigned | Known::Refused(..)))
            .map(|(at, _)| at)
            .collect();
        let newest = signed.iter().rev().take(STAY_FOR_RECOVERY).copied().collect();
        let mut this = Self {
            storage,
            plan,
            shard,
            name: name.unwrap_or_default().to_owned(),
            logs,
            newest,
            ends: Ends::default(),
        };
        let last = (0..this.logs.len()).rev().find(|at| this.is_candidate(*at));
        if let Some(last) = last {
            let behind = signed.iter().filter(|at| **at > last).take(SUCCESSORS);
            let until = behind.last().copied().unwrap_or(last);
            this.survey(until)?;
            this.read_on(until)?;
        }
        this.ends = this.ends();
        Ok(this)
    }

    /// Whether a log may be old enough, as its name tells, and is not needed. A name of the future tells nothing: its
    /// records do.
    fn is_candidate(&self, at: usize) -> bool {
        let (incarnation, known) = &self.logs[at];
        let begun = incarnation.timestamp_ms();
        matches!(known, Known::Unread | Known::Read(_))
            && !self.newest.contains(&at)
            && (begun <= ago_ms(self.plan.policy.days(), self.plan.now) || begun > self.plan.now / 1000)
    }

    /// Reads the logs up to a position.
    fn survey(&mut self, until: usize) -> Result<(), KeepingError> {
        let holds: Vec<&Hold> = self.plan.retention.active().collect();
        for (incarnation, known) in &mut self.logs[..=until] {
            if matches!(known, Known::Unread) {
                let dir = self.shard.dir.join(incarnation.to_string());
                let read = survey(
                    self.storage,
                    &dir,
                    (*incarnation, None),
                    self.plan.key,
                    &holds,
                    &mut |_, _| {},
                )?;
                *known = Known::Read(Box::new(read));
            }
        }
        Ok(())
    }

    fn decide(self) -> Result<Vec<Planned>, KeepingError> {
        let mut planned: Vec<Planned> = Vec::with_capacity(self.logs.len());
        let mut staying = BTreeSet::new();
        for (at, (incarnation, known)) in self.logs.iter().enumerate() {
            let fate = self.fate(at, &staying)?;
            if matches!(fate, Fate::Stay(_)) {
                staying.insert(*incarnation);
            }
            let (records, exchanges, bytes, newest) = match known {
                Known::Read(read) => {
                    let records = read.end.as_ref().map_or(0, |end| end.size);
                    (records, read.exchanges, read.bytes, read.newest)
                }
                Known::Removed(removed) => {
                    let tombstone = &removed.tombstone;
                    (tombstone.size, tombstone.exchanges, 0, tombstone.newest)
                }
                _ => (0, 0, 0, 0),
            };
            planned.push(Planned {
                dir: self.shard.dir.join(incarnation.to_string()),
                shard: self.name.clone(),
                incarnation: *incarnation,
                records,
                exchanges,
                bytes,
                newest,
                fate,
            });
        }
        Ok(planned)
    }

    fn fate(&self, at: usize, staying: &BTreeSet<Ulid>) -> Result<Fate, KeepingError> {
        let stay = |code, text: &str| Ok(Fate::Stay(vec![reason(code, text)]));
        let read = match &self.logs[at].1 {
            Known::Removed(removed) => return Ok(self.finish(at, removed)),
            Known::Refused(why, _) => return stay("tombstone_refused", why),
            Known::Unsigned => {
                return stay(
                    "unsigned",
                    "it is not signed: it remains from an interrupted start, or was added by another process",
                );
            }
            Known::Unread | Known::Read(_) if self.newest.contains(&at) => {
                return stay(
                    "newest",
                    "a starting worker reads the two newest logs of the shard",
                );
            }
            Known::Read(read) if self.is_candidate(at) => read,
            Known::Unread | Known::Read(_) => {
                return stay("young", "it was started within the minimum retention time");
            }
        };
        let mut reasons: Vec<Reason> = self.age(read).into_iter().collect();
        reasons.extend(self.holds(at, read));
        let kept = read.ends_of.intersection(staying);
        reasons.extend(kept.map(|log| ends_kept(*log)));
        match self.end(at, read) {
            Err(why) => reasons.extend(why),
            Ok(last) if reasons.is_empty() => {
                let removable = self.removable(at, read, last);
                return match removable.or_else(|error| damaged(error).map(Err))? {
                    Ok(removable) => Ok(Fate::Remove(Box::new(removable))),
                    Err(why) => Ok(Fate::Stay(vec![why])),
                };
            }
            Ok(_) => {}
        }
        Ok(Fate::Stay(reasons))
    }

    /// A removal that was cut short goes on, unless something was held since.
    fn finish(&self, at: usize, removed: &removal::Removed) -> Fate {
        if removed.remains.is_empty() {
            return Fate::Removed;
        }
        if self.newest.contains(&at) {
            let text = "it has a tombstone but is one of the two newest logs of its shard: run fsck";
            return Fate::Stay(vec![reason("newest", text)]);
        }
        let since = held_since(self.plan.retention, removed);
        match since.is_empty() {
            true => Fate::Finish(removed.remains.clone()),
            false => Fate::Stay(since),
        }
    }

    /// How long a log must be kept, in days.
    fn minimum(&self, read: &Survey) -> u64 {
        let policy = self.plan.policy;
        match read.ends_of.is_empty() {
            true => read
                .tenants
                .iter()
                .fold(policy.days(), |most, tenant| most.max(policy.of(tenant))),
            // Of whom those exchanges were, it does not say.
            false => policy.longest(),
        }
    }

    fn age(&self, read: &Survey) -> Option<Reason> {
        let (minimum, now) = (self.minimum(read), self.plan.now);
        if read.newest > now {
            let text = "its newest record is dated in the future: a clock was or is wrong";
            return Some(reason("future", text));
        }
        if is_over(minimum, read.newest, now) {
            return None;
        }
        let text = format!("its newest record is younger than {minimum} days");
        Some(reason("young", text))
    }

    /// The holds that touch records of a log, or ends of its exchanges in later ones: without the log, their salts are gone.
    fn holds(&self, at: usize, read: &Survey) -> Vec<Reason> {
        let of = self.logs[at].0;
        let here = read.held_ends.iter();
        let later = self.logs[at + 1..].iter().filter_map(|(_, known)| known.survey());
        let later = later.flat_map(|later| &later.held_ends);
        let held = |end: &&HeldEnd| {
            let log = self.logs.iter().find(|(log, _)| *log == end.incarnation);
            let admitted = log.and_then(|(_, known)| known.survey());
            let tenant = admitted.and_then(|admitted| admitted.open.get(&end.admission));
            end.is_held(self.plan.retention.active(), tenant.map(String::as_str))
        };
        let ends = here.chain(later.filter(|end| end.incarnation == of)).filter(held);
        let by: BTreeSet<u64> = ends
            .map(|end| end.hold)
            .chain(read.held_by.iter().copied())
            .collect();
        let others = self.plan.retention.active().filter(|hold| !by.contains(&hold.id));
        let held = by.iter().map(|id| {
            let text = format!("hold {id} covers its records or those of its exchanges");
            reason("held", text)
        });
        held.chain(self.ends.may_be_held(of, read, |_| true, others))
            .collect()
    }

    /// What later logs say of one, with whether it is of its end.
    fn claims(&self, at: usize) -> Vec<(Predecessor, bool)> {
        let later = self.logs[at + 1..].iter().filter_map(|(_, known)| known.rules());
        claims(self.logs[at].0, later)
    }

    /// The signed end of a log that has ended and goes on in another; or why it has not, or cannot be shown.
    fn end<'r>(&self, at: usize, read: &'r Survey) -> Result<&'r (Checkpoint, String), Vec<Reason>> {
        let mut why = Vec::new();
        if let Some(damage) = &read.damage {
            why.push(reason("damaged", format!("{damage}: run fsck")));
        }
        if read.unknown > 0 {
            let text = format!(
                "{} of its records are of kinds that this version does not know",
                read.unknown
            );
            why.push(reason("unknown_kinds", text));
        }
        let origin = format!("{}/{}/{}", self.plan.key.name(), self.name, self.logs[at].0);
        let Some(end) = read.end.as_ref().filter(|end| end.origin == origin) else {
            why.push(reason("damaged", format!("it is not {origin}: run fsck")));
            return Err(why);
        };
        let claims = self.claims(at);
        why.extend(contradiction(&claims, Some(end)));
        if !claims.iter().any(|(_, ended)| *ended) && !read.rules.sealed() {
            why.push(reason("not_ended", "its end has not been recorded yet"));
        }
        let of = self.logs[at].0;
        let goes_on = self.logs[at + 1..].iter().any(|(_, known)| {
            let names = |rules: &Rules| {
                rules
                    .opened()
                    .and_then(|opened| opened.predecessor)
                    .is_some_and(|named| named.incarnation == of)
            };
            match known {
                Known::Removed(removed) => names(&removed.rules),
                Known::Read(read) => names(&read.rules) && read.rules.served().is_some(),
                _ => false,
            }
        });
        if !goes_on {
            why.push(reason(
                "successor_not_served",
                "no later log that names this one has served requests",
            ));
        }
        match &read.last {
            Some(last) if why.is_empty() => Ok(last),
            Some(_) => Err(why),
            None => {
                why.push(reason(
                    "uncovered",
                    "no checkpoint by the ledger's key covers all of its records",
                ));
                Err(why)
            }
        }
    }

    /// What is written of a log that may go; or why it cannot be shown to be what is said of it.
    fn removable(
        &self,
        at: usize,
        read: &Survey,
        (last, note): &(Checkpoint, String),
    ) -> Result<Result<Removable, Reason>, KeepingError> {
        let mut files = Vec::new();
        for (seq, record) in &read.stays {
            let hashes = prove::inclusion(self.storage, &read.dir, *seq, &leaf_hash(record), last)?;
            let proof = TlogProof {
                extra: None,
                index: *seq,
                hashes,
                checkpoint: note.clone(),
            };
            files.push((record_name(*seq), record.clone()));
            files.push((proof_name(*seq), proof.encode().into_bytes()));
        }
        for (size, root) in self.stated(at, read, last)? {
            let old = Checkpoint {
                origin: last.origin.clone(),
                size,
                root,
            };
            match consistency(self.storage, &self.shard.dir, &old, last) {
                Ok(hashes) => files.push((consistency_name(size), consistency_text(&hashes).into_bytes())),
                Err(EvidenceError::Inconsistent(why)) => {
                    return Ok(Err(reason("damaged", format!("{why}: run fsck"))));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let tombstone = Tombstone {
            origin: last.origin.clone(),
            size: last.size,
            root: last.root,
            removed: self.plan.now,
            exchanges: read.exchanges,
            newest: read.newest,
            minimum_days: self.minimum(read),
            why: self.plan.why.clone(),
        };
        Ok(Ok(Removable {
            tombstone,
            files,
            ends_of: read.ends_of.clone(),
        }))
    }

    /// The heads before the last one that somebody states of a log: each must stay provable.
    fn stated(
        &self,
        at: usize,
        read: &Survey,
        last: &Checkpoint,
    ) -> Result<BTreeSet<(u64, Hash)>, KeepingError> {
        let of = self.logs[at].0;
        let mut heads: BTreeSet<(u64, Hash)> = self
            .claims(at)
            .iter()
            .map(|(said, _)| (said.size, said.root))
            .collect();
        heads.extend(read.own.iter().map(|own| (own.size, own.root)));
        for (later, _) in &self.logs[at + 1..] {
            let dir = self.shard.dir.join(later.to_string());
            let cover = match checkpoint_file::read_cover(self.storage, &dir, of) {
                Err(error) if error.is_spoiled() => None,
                other => other?,
            };
            let signed = cover.and_then(|note| Checkpoint::verify(&note, self.plan.key).ok());
            heads.extend(
                signed
                    .filter(|signed| signed.origin == last.origin)
                    .map(|signed| (signed.size, signed.root)),
            );
        }
        let held = self.plan.held.iter().map(|held| &held.checkpoint);
        heads.extend(
            held.filter(|held| held.origin == last.origin)
                .map(|held| (held.size, held.root)),
        );
        heads.retain(|(size, root)| (*size, *root) != (last.size, last.root) && *size > 0);
        Ok(heads)
    }
}

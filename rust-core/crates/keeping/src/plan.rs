//! Plans which logs may be removed and why others are retained. This module changes nothing.

mod later_logs;

use crate::exchange_ends::ExchangeEnds;
use crate::hold::Hold;
use crate::logs::{collect_claims, contradiction, late_hold_reasons, read_removal};
use crate::policy::{RetentionPolicy, days_ago_ms, has_elapsed};
use crate::reason::{RetentionReason, damage_reason, ends_retained_reason, reason};
use crate::survey::{HoldCandidate, LogSurvey, survey_log};
use crate::{RetentionError, RetentionState};
use proofgate_evidence::layout::{Shard, shards};
use proofgate_evidence::removal::{
    self, RemovalState, consistency_name, consistency_text, proof_name, record_name,
};
use proofgate_evidence::rules::{LogTracker, Predecessor};
use proofgate_evidence::{
    EvidenceError, HeldCheckpoint, ReadStorage, Ulid, checkpoint_file, prove, prove_consistency,
};
use proofgate_ledger::{Checkpoint, Hash, Justification, TlogProof, Tombstone, VerifyingKey, leaf_hash};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Number of newest logs that a starting worker may read: the newest log of its shard, and the
/// previous one.
const RECOVERY_LOGS: usize = 2;
/// Number of later logs that are searched for the end of a log.
const MAX_SUCCESSORS: usize = 2;

/// The inputs of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanRequest<'p> {
    /// The ledger's directory.
    pub ledger: &'p Path,
    /// The ledger's key.
    pub key: &'p VerifyingKey,
    /// The retention key.
    pub retention_key: &'p VerifyingKey,
    /// The retention job's state, with the holds.
    pub retention: &'p RetentionState,
    /// How long records must be kept.
    pub policy: &'p RetentionPolicy,
    /// The approver of the removal and the reason, for the tombstones.
    pub justification: &'p Justification,
    /// Checkpoints that are held outside the ledger. It stays provable after a log's removal that
    /// they belong to the log.
    pub held_checkpoints: &'p [HeldCheckpoint],
    /// The current time in unix microseconds.
    pub now: u64,
    /// The instant of `now`, from which the time of signing a tombstone is computed; `None` to use
    /// `now` itself.
    pub started_at: Option<Instant>,
}

/// A log that may be removed: its tombstone, not signed yet, and its retained files, by name.
#[derive(Clone, Debug)]
pub struct RemovableLog {
    /// The tombstone to sign.
    pub tombstone: Tombstone,
    /// The files to write before the tombstone.
    pub files: Vec<(String, Vec<u8>)>,
    /// Logs whose exchanges end in this one: this log is removed after them.
    pub(crate) admission_logs: BTreeSet<Ulid>,
}

/// What happens to a log.
#[derive(Clone, Debug)]
pub enum RemovalAction {
    /// It may be removed.
    Remove(Box<RemovableLog>),
    /// It has a tombstone, but these files of it are left.
    Finish(Vec<String>),
    /// It was removed.
    Removed,
    /// It is retained.
    Retain(Vec<RetentionReason>),
}

/// A log and its planned action.
#[derive(Clone, Debug)]
pub struct PlannedLog {
    /// Its directory.
    pub dir: PathBuf,
    /// The name of its shard's directory.
    pub shard: String,
    /// Its incarnation.
    pub incarnation: Ulid,
    /// Number of its records, if it was read.
    pub records: u64,
    /// Number of its admissions, if it was read.
    pub exchanges: u64,
    /// Size of its records in bytes, if it was read.
    pub bytes: u64,
    /// Time of its newest record in unix microseconds, if it was read.
    pub newest_time: u64,
    /// What happens to it.
    pub action: RemovalAction,
}

/// Plans which logs of a ledger may be removed, by shard and age. Logs that may be old enough are read and verified from
/// their beginning.
///
/// # Errors
/// [`RetentionError::Wal`] when the ledger cannot be read.
pub fn plan(storage: &dyn ReadStorage, plan: &PlanRequest<'_>) -> Result<Vec<PlannedLog>, RetentionError> {
    let mut planned = Vec::new();
    for shard in shards(storage, plan.ledger)? {
        if shard.single {
            return Err(RetentionError::InvalidRequest(
                "give the directory of the ledger or of a shard: a single log does not show which log follows it".to_owned(),
            ));
        }
        planned.extend(ShardPlan::read(storage, plan, &shard)?.decide()?);
    }
    Ok(planned)
}

/// What is known of a log.
enum KnownLog {
    /// It was removed.
    Removed(Box<removal::RemovedLog>),
    /// Its tombstone is refused for this reason; without a valid signature, it may not be a log at all.
    Refused(String, SignatureState),
    /// It has no checkpoint.
    Unsigned,
    /// It is too young, or needed regardless of its content.
    NotRead,
    Read(Box<LogSurvey>),
}

/// Whether the ledger's key has signed the checkpoint of a log.
enum SignatureState {
    Yes,
    No,
}

impl SignatureState {
    fn read(storage: &dyn ReadStorage, dir: &Path, key: &VerifyingKey) -> Result<Self, RetentionError> {
        let note = match checkpoint_file::read(storage, dir) {
            Ok(note) => note,
            Err(error) => {
                RetentionError::from(error).into_damage()?;
                None
            }
        };
        match note.is_some_and(|note| Checkpoint::verify(&note, key).is_ok()) {
            true => Ok(Self::Yes),
            false => Ok(Self::No),
        }
    }
}

impl KnownLog {
    fn tracker(&self) -> Option<&LogTracker> {
        match self {
            Self::Removed(removed) => Some(&removed.tracker),
            Self::Read(survey) => Some(&survey.tracker),
            Self::Refused(..) | Self::Unsigned | Self::NotRead => None,
        }
    }

    fn survey(&self) -> Option<&LogSurvey> {
        match self {
            Self::Read(survey) => Some(survey),
            _ => None,
        }
    }
}

struct ShardPlan<'p> {
    storage: &'p dyn ReadStorage,
    request: &'p PlanRequest<'p>,
    shard: &'p Shard,
    name: String,
    logs: Vec<(Ulid, KnownLog)>,
    /// Positions of the newest logs, which recovery needs.
    newest_logs: BTreeSet<usize>,
    exchange_ends: ExchangeEnds,
}

impl<'p> ShardPlan<'p> {
    fn read(
        storage: &'p dyn ReadStorage,
        plan: &'p PlanRequest<'p>,
        shard: &'p Shard,
    ) -> Result<Self, RetentionError> {
        let name = shard.dir.file_name().and_then(|name| name.to_str());
        let mut logs = Vec::with_capacity(shard.incarnations.len());
        for incarnation in &shard.incarnations {
            let dir = shard.dir.join(incarnation.to_string());
            let known = match read_removal(storage, &dir, plan.key, plan.retention_key)? {
                RemovalState::Done(removed) => KnownLog::Removed(removed),
                RemovalState::Refused(refusal) => {
                    KnownLog::Refused(refusal.reason, SignatureState::read(storage, &dir, plan.key)?)
                }
                RemovalState::None => match checkpoint_file::read(storage, &dir) {
                    Ok(None) => KnownLog::Unsigned,
                    Ok(Some(_)) => KnownLog::NotRead,
                    Err(error) => {
                        RetentionError::from(error).into_damage()?;
                        KnownLog::NotRead
                    }
                },
            };
            logs.push((*incarnation, known));
        }
        let signed = logs.iter().enumerate();
        let signed: Vec<usize> = signed
            // A directory whose tombstone is refused may not be a log at all.
            .filter(|(_, (_, known))| !matches!(known, KnownLog::Unsigned | KnownLog::Refused(..)))
            .map(|(at, _)| at)
            .collect();
        let newest = signed.iter().rev().take(RECOVERY_LOGS).copied().collect();
        let mut this = Self {
            storage,
            request: plan,
            shard,
            name: name.unwrap_or_default().to_owned(),
            logs,
            newest_logs: newest,
            exchange_ends: ExchangeEnds::default(),
        };
        let last = (0..this.logs.len()).rev().find(|at| this.is_candidate(*at));
        if let Some(last) = last {
            let behind = signed.iter().filter(|at| **at > last).take(MAX_SUCCESSORS);
            let until = behind.last().copied().unwrap_or(last);
            this.survey_until(until)?;
            this.read_later_logs(until)?;
        }
        this.exchange_ends = this.exchange_ends();
        Ok(this)
    }

    /// Returns whether a log may be old enough by its name, and is not needed. If its name has a
    /// future time, the records decide.
    fn is_candidate(&self, at: usize) -> bool {
        let (incarnation, known) = &self.logs[at];
        let begun = incarnation.timestamp_ms();
        matches!(known, KnownLog::NotRead | KnownLog::Read(_))
            && !self.newest_logs.contains(&at)
            && (begun <= days_ago_ms(self.request.policy.days(), self.request.now)
                || begun > self.request.now / 1000)
    }

    /// Reads the logs up to a position.
    fn survey_until(&mut self, until: usize) -> Result<(), RetentionError> {
        let holds: Vec<&Hold> = self.request.retention.active_holds().collect();
        for (incarnation, known) in &mut self.logs[..=until] {
            if matches!(known, KnownLog::NotRead) {
                let dir = self.shard.dir.join(incarnation.to_string());
                let read = survey_log(
                    self.storage,
                    &dir,
                    (*incarnation, None),
                    self.request.key,
                    &holds,
                    &mut |_, _| {},
                )?;
                *known = KnownLog::Read(Box::new(read));
            }
        }
        Ok(())
    }

    fn decide(self) -> Result<Vec<PlannedLog>, RetentionError> {
        let mut planned: Vec<PlannedLog> = Vec::with_capacity(self.logs.len());
        let mut staying = BTreeSet::new();
        for (at, (incarnation, known)) in self.logs.iter().enumerate() {
            let fate = self.action(at, &staying)?;
            if matches!(fate, RemovalAction::Retain(_)) {
                staying.insert(*incarnation);
            }
            let (records, exchanges, bytes, newest) = match known {
                KnownLog::Read(read) => {
                    let records = read.end.as_ref().map_or(0, |end| end.size);
                    (records, read.exchanges, read.bytes, read.newest_time)
                }
                KnownLog::Removed(removed) => {
                    let tombstone = &removed.tombstone;
                    (tombstone.size, tombstone.exchanges, 0, tombstone.newest_time)
                }
                _ => (0, 0, 0, 0),
            };
            planned.push(PlannedLog {
                dir: self.shard.dir.join(incarnation.to_string()),
                shard: self.name.clone(),
                incarnation: *incarnation,
                records,
                exchanges,
                bytes,
                newest_time: newest,
                action: fate,
            });
        }
        Ok(planned)
    }

    fn action(&self, at: usize, staying: &BTreeSet<Ulid>) -> Result<RemovalAction, RetentionError> {
        let stay = |code, text: &str| Ok(RemovalAction::Retain(vec![reason(code, text)]));
        let read = match &self.logs[at].1 {
            KnownLog::Removed(removed) => return Ok(self.finish_removal(at, removed)),
            KnownLog::Refused(why, _) => return stay("tombstone_refused", why),
            KnownLog::Unsigned => {
                return stay(
                    "unsigned",
                    "it is not signed: it remains from an interrupted start, or was added by another process",
                );
            }
            KnownLog::NotRead | KnownLog::Read(_) if self.newest_logs.contains(&at) => {
                return stay(
                    "newest",
                    "a starting worker reads the two newest logs of the shard",
                );
            }
            KnownLog::Read(read) if self.is_candidate(at) => read,
            KnownLog::NotRead | KnownLog::Read(_) => {
                return stay("young", "it was started within the minimum retention time");
            }
        };
        let mut reasons: Vec<RetentionReason> = self.age_reason(read).into_iter().collect();
        reasons.extend(self.hold_reasons(at, read));
        let kept = read.admission_logs.intersection(staying);
        reasons.extend(kept.map(|log| ends_retained_reason(*log)));
        match self.signed_end(at, read) {
            Err(why) => reasons.extend(why),
            Ok(last) if reasons.is_empty() => {
                let removable = self.build_removable(at, read, last);
                return match removable.or_else(|error| damage_reason(error).map(Err))? {
                    Ok(removable) => Ok(RemovalAction::Remove(Box::new(removable))),
                    Err(why) => Ok(RemovalAction::Retain(vec![why])),
                };
            }
            Ok(_) => {}
        }
        Ok(RemovalAction::Retain(reasons))
    }

    /// Continues an interrupted removal, unless a hold was placed since.
    fn finish_removal(&self, at: usize, removed: &removal::RemovedLog) -> RemovalAction {
        if removed.leftover_files.is_empty() {
            return RemovalAction::Removed;
        }
        if self.newest_logs.contains(&at) {
            let text = "it has a tombstone but is one of the two newest logs of its shard: run fsck";
            return RemovalAction::Retain(vec![reason("newest", text)]);
        }
        let since = late_hold_reasons(self.request.retention, removed);
        match since.is_empty() {
            true => RemovalAction::Finish(removed.leftover_files.clone()),
            false => RemovalAction::Retain(since),
        }
    }

    /// Returns how long a log must be kept, in days.
    fn minimum_days(&self, read: &LogSurvey) -> u64 {
        let policy = self.request.policy;
        match read.admission_logs.is_empty() {
            true => read
                .tenants
                .iter()
                .fold(policy.days(), |most, tenant| most.max(policy.days_for(tenant))),
            // The log does not contain the tenants of these exchanges.
            false => policy.max_days(),
        }
    }

    fn age_reason(&self, read: &LogSurvey) -> Option<RetentionReason> {
        let (minimum, now) = (self.minimum_days(read), self.request.now);
        if read.newest_time > now {
            let text = "its newest record is dated in the future: a clock was or is wrong";
            return Some(reason("future", text));
        }
        if has_elapsed(minimum, read.newest_time, now) {
            return None;
        }
        let text = format!("its newest record is younger than {minimum} days");
        Some(reason("young", text))
    }

    /// Returns the reasons of holds that apply to records of a log, or to ends of its exchanges in
    /// later logs, whose salts would be lost with the log.
    fn hold_reasons(&self, at: usize, read: &LogSurvey) -> Vec<RetentionReason> {
        let of = self.logs[at].0;
        let here = read.hold_candidates.iter();
        let later = self.logs[at + 1..].iter().filter_map(|(_, known)| known.survey());
        let later = later.flat_map(|later| &later.hold_candidates);
        let held = |end: &&HoldCandidate| {
            let log = self.logs.iter().find(|(log, _)| *log == end.incarnation);
            let admitted = log.and_then(|(_, known)| known.survey());
            let tenant = admitted.and_then(|admitted| admitted.open_exchange_tenants.get(&end.admission));
            end.find_hold(self.request.retention.active_holds(), tenant.map(String::as_str))
        };
        let ends = here.chain(later.filter(|end| end.incarnation == of)).filter(held);
        let by: BTreeSet<u64> = ends
            .map(|end| end.hold)
            .chain(read.hold_ids.iter().copied())
            .collect();
        let others = self
            .request
            .retention
            .active_holds()
            .filter(|hold| !by.contains(&hold.id));
        let held = by.iter().map(|id| {
            let text = format!("hold {id} covers its records or those of its exchanges");
            reason("held", text)
        });
        held.chain(self.exchange_ends.hold_reasons(of, read, |_| true, others))
            .collect()
    }

    /// Returns the statements of later logs about a log, each with whether it is about the log's
    /// end.
    fn claims(&self, at: usize) -> Vec<(Predecessor, bool)> {
        let later = self.logs[at + 1..]
            .iter()
            .filter_map(|(_, known)| known.tracker());
        collect_claims(self.logs[at].0, later)
    }

    /// Returns the signed end of a log that has ended and continues in another; or why it has not ended or cannot be
    /// proven.
    fn signed_end<'r>(
        &self,
        at: usize,
        read: &'r LogSurvey,
    ) -> Result<&'r (Checkpoint, String), Vec<RetentionReason>> {
        let mut why = Vec::new();
        if let Some(damage) = &read.damage {
            why.push(reason("damaged", format!("{damage}: run fsck")));
        }
        if read.unknown_records > 0 {
            let text = format!(
                "{} of its records are of kinds that this version does not know",
                read.unknown_records
            );
            why.push(reason("unknown_kinds", text));
        }
        let origin = format!("{}/{}/{}", self.request.key.name(), self.name, self.logs[at].0);
        let Some(end) = read.end.as_ref().filter(|end| end.origin == origin) else {
            why.push(reason(
                "damaged",
                format!("its end is missing, or names another log than {origin}: run fsck"),
            ));
            return Err(why);
        };
        let claims = self.claims(at);
        why.extend(contradiction(&claims, Some(end)));
        if !claims.iter().any(|(_, ended)| *ended) && !read.tracker.is_sealed() {
            why.push(reason("not_ended", "its end has not been recorded yet"));
        }
        let of = self.logs[at].0;
        let goes_on = self.logs[at + 1..].iter().any(|(_, known)| {
            let names = |rules: &LogTracker| {
                rules
                    .opening()
                    .and_then(|opened| opened.predecessor)
                    .is_some_and(|named| named.incarnation == of)
            };
            match known {
                KnownLog::Removed(removed) => names(&removed.tracker),
                KnownLog::Read(read) => names(&read.tracker) && read.tracker.first_served().is_some(),
                _ => false,
            }
        });
        if !goes_on {
            why.push(reason(
                "successor_not_served",
                "no later log names this log as its predecessor and has served requests",
            ));
        }
        match &read.final_note {
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

    /// Returns the files to write for a log that may be removed, or why its stated heads cannot be
    /// proven.
    fn build_removable(
        &self,
        at: usize,
        read: &LogSurvey,
        (last, note): &(Checkpoint, String),
    ) -> Result<Result<RemovableLog, RetentionReason>, RetentionError> {
        let mut files = Vec::new();
        for (seq, record) in &read.retained_records {
            let hashes = prove::inclusion_path(self.storage, &read.dir, *seq, &leaf_hash(record), last)?;
            let proof = TlogProof {
                extra: None,
                index: *seq,
                hashes,
                checkpoint: note.clone(),
            };
            files.push((record_name(*seq), record.clone()));
            files.push((proof_name(*seq), proof.encode().into_bytes()));
        }
        for (size, root) in self.stated_heads(at, read, last)? {
            let old = Checkpoint {
                origin: last.origin.clone(),
                size,
                root,
            };
            match prove_consistency(self.storage, &self.shard.dir, &old, last) {
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
            removed_at: self.request.now,
            exchanges: read.exchanges,
            newest_time: read.newest_time,
            minimum_days: self.minimum_days(read),
            justification: self.request.justification.clone(),
        };
        Ok(Ok(RemovableLog {
            tombstone,
            files,
            admission_logs: read.admission_logs.clone(),
        }))
    }

    /// Returns the stated heads of a log before its last one: each must stay provable.
    fn stated_heads(
        &self,
        at: usize,
        read: &LogSurvey,
        last: &Checkpoint,
    ) -> Result<BTreeSet<(u64, Hash)>, RetentionError> {
        let of = self.logs[at].0;
        let mut heads: BTreeSet<(u64, Hash)> = self
            .claims(at)
            .iter()
            .map(|(said, _)| (said.size, said.root))
            .collect();
        heads.extend(read.own_checkpoint.iter().map(|own| (own.size, own.root)));
        for (later, _) in &self.logs[at + 1..] {
            let dir = self.shard.dir.join(later.to_string());
            let cover = match checkpoint_file::read_successor_note(self.storage, &dir, of) {
                Err(error) if error.is_damaged() => None,
                other => other?,
            };
            let signed = cover.and_then(|note| Checkpoint::verify(&note, self.request.key).ok());
            heads.extend(
                signed
                    .filter(|signed| signed.origin == last.origin)
                    .map(|signed| (signed.size, signed.root)),
            );
        }
        let held = self.request.held_checkpoints.iter().map(|held| &held.checkpoint);
        heads.extend(
            held.filter(|held| held.origin == last.origin)
                .map(|held| (held.size, held.root)),
        );
        heads.retain(|(size, root)| (*size, *root) != (last.size, last.root) && *size > 0);
        Ok(heads)
    }
}

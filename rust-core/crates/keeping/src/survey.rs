//! Reads and verifies the content of a log once, from its beginning.

use crate::RetentionError;
use crate::hold::Hold;
use proofgate_evidence::checkpoint_file::{self, CHECKPOINT_FILE};
use proofgate_evidence::frame::frame_len;
use proofgate_evidence::layout::parse_incarnation;
use proofgate_evidence::log_reader::{LogItem, LogReader};
use proofgate_evidence::rules::LogTracker;
use proofgate_evidence::{EvidenceError, ReadStorage, Ulid, prove};
use proofgate_ledger::record::Record;
use proofgate_ledger::{Checkpoint, Hash, Mmr, VerifyingKey, leaf_hash};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The content of a log that was read to its end.
pub(crate) struct LogSurvey {
    pub(crate) dir: PathBuf,
    pub(crate) tracker: LogTracker,
    /// Size and root of all its records.
    pub(crate) end: Option<Checkpoint>,
    /// Its own newest checkpoint, verified.
    pub(crate) own_checkpoint: Option<Checkpoint>,
    /// The verified note that covers the whole log, its own or a successor's; `None` if there is
    /// none.
    pub(crate) final_note: Option<(Checkpoint, String)>,
    /// Time of its newest record, in unix microseconds.
    pub(crate) newest_time: u64,
    /// Size of its stored records in bytes.
    pub(crate) bytes: u64,
    pub(crate) exchanges: u64,
    pub(crate) tenants: BTreeSet<String>,
    /// Logs whose exchanges continue or end here.
    pub(crate) admission_logs: BTreeSet<Ulid>,
    /// Tenants of its exchanges without an end, by the number of the admission.
    pub(crate) open_exchange_tenants: BTreeMap<u64, String>,
    /// Numbers of the holds that apply to one of its records.
    pub(crate) hold_ids: BTreeSet<u64>,
    /// Records of other logs' exchanges to which holds may apply.
    pub(crate) hold_candidates: BTreeSet<HoldCandidate>,
    /// Number of records of kinds that this version does not know.
    pub(crate) unknown_records: u64,
    /// Why the log is damaged; `None` if it is not.
    pub(crate) damage: Option<String>,
    /// Numbers and bytes of the records that a removal retains.
    pub(crate) retained_records: Vec<(u64, Vec<u8>)>,
}

/// A record to which a hold applies if its exchange, admitted in another log, belongs to the hold's tenant: only that log
/// states the tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HoldCandidate {
    /// The log of the admission.
    pub(crate) incarnation: Ulid,
    /// Number of the admission in that log.
    pub(crate) admission: u64,
    /// Number of the hold.
    pub(crate) hold: u64,
}

impl HoldCandidate {
    /// Returns whether the hold is among these and may cover this tenant; `None` stands for an unknown tenant.
    pub(crate) fn find_hold<'h>(
        &self,
        holds: impl IntoIterator<Item = &'h Hold>,
        tenant: Option<&str>,
    ) -> bool {
        let mut holds = holds.into_iter().filter(|hold| hold.id == self.hold);
        holds.any(|hold| match (&hold.scope.tenant, tenant) {
            (Some(held), Some(tenant)) => held == tenant,
            _ => true,
        })
    }
}

/// Returns the request id of the exchange that a record belongs to: its own, or the one that an analysis refers to.
pub(crate) fn exchange_id<'r>(record: &'r Record<'_>) -> Option<&'r str> {
    match record {
        Record::Analysis(analysis) => Some(&analysis.exchange),
        _ => record.id(),
    }
}

/// Reads a log. `holds` has the active holds, and `visit` is called for every record with its
/// number. If the log was read before, up to `seen`, `visit` is called only for later records; the
/// earlier ones must be unchanged.
pub(crate) fn survey_log(
    storage: &dyn ReadStorage,
    dir: &Path,
    (incarnation, seen): (Ulid, Option<&Checkpoint>),
    key: &VerifyingKey,
    holds: &[&Hold],
    visit: &mut dyn FnMut(u64, &Record<'_>),
) -> Result<LogSurvey, RetentionError> {
    let seen = seen.map_or((0, Mmr::new().root()), |seen| (seen.size, seen.root));
    let mut visit = |seq, record: &Record<'_>| {
        if seq >= seen.0 {
            visit(seq, record);
        }
    };
    let mut found = LogSurvey {
        dir: dir.to_owned(),
        tracker: LogTracker::new(incarnation),
        end: None,
        own_checkpoint: None,
        final_note: None,
        newest_time: 0,
        bytes: 0,
        exchanges: 0,
        tenants: BTreeSet::new(),
        admission_logs: BTreeSet::new(),
        open_exchange_tenants: BTreeMap::new(),
        hold_ids: BTreeSet::new(),
        hold_candidates: BTreeSet::new(),
        unknown_records: 0,
        damage: None,
        retained_records: Vec::new(),
    };
    // The checkpoint is read before the records, whose number only grows.
    let own = match checkpoint_file::read(storage, dir) {
        Ok(note) => note,
        Err(error) => {
            found.damage = Some(RetentionError::from(error).into_damage()?);
            None
        }
    };
    if let Some(note) = &own {
        match Checkpoint::verify(note, key) {
            Ok(signed) => found.own_checkpoint = Some(signed),
            Err(error) => found.damage = Some(format!("{CHECKPOINT_FILE}: {error}")),
        }
    }
    let mut mmr = Mmr::new();
    if let Err(error) = found.read_records(storage, (incarnation, seen), &mut mmr, holds, &mut visit) {
        let reason = RetentionError::from(error).into_damage()?;
        found.damage.get_or_insert(reason);
    }
    found.tracker.finish();
    if seen.0 > mmr.size() {
        let (before, now) = (seen.0, mmr.size());
        found.damage.get_or_insert(format!(
            "the log had {before} records a moment ago, but has only {now} now"
        ));
    }
    if let Some(own) = found.own_checkpoint.as_ref().filter(|own| own.size > mmr.size()) {
        found.damage.get_or_insert(format!(
            "its checkpoint covers {} records, but only {} are present",
            own.size,
            mmr.size()
        ));
    }
    if let Some(opened) = found.tracker.opening() {
        found.end = Some(Checkpoint {
            origin: opened.origin.clone(),
            size: mmr.size(),
            root: mmr.root(),
        });
    }
    if let Err(error) = found.find_final_note(storage, own, key) {
        let reason = RetentionError::from(error).into_damage()?;
        found.damage.get_or_insert(reason);
    }
    Ok(found)
}

impl LogSurvey {
    /// Returns whether a checkpoint covers it.
    pub(crate) fn is_signed(&self) -> bool {
        self.own_checkpoint.is_some() || self.final_note.is_some()
    }

    /// Processes all records of the log, up to the first invalid one.
    fn read_records(
        &mut self,
        storage: &dyn ReadStorage,
        (incarnation, seen): (Ulid, (u64, Hash)),
        mmr: &mut Mmr,
        holds: &[&Hold],
        visit: &mut dyn FnMut(u64, &Record<'_>),
    ) -> Result<(), EvidenceError> {
        let mut log = LogReader::open(storage, &self.dir, incarnation)?;
        log.expect_records(self.own_checkpoint.as_ref().map_or(0, |own| own.size));
        let mut flaw: Option<(u64, String)> = None;
        loop {
            let stored = match log.next()? {
                LogItem::End => return Ok(()),
                LogItem::Flaw(found) if found.is_trailing_data => continue,
                LogItem::Flaw(found) => {
                    flaw.get_or_insert((found.seq, found.reason));
                    continue;
                }
                LogItem::Record(stored) => stored,
            };
            if flaw.is_some() || stored.seq != mmr.size() {
                let (seq, reason) = flaw.unwrap_or((mmr.size(), "it is missing".to_owned()));
                self.damage.get_or_insert(format!("record {seq}: {reason}"));
                return Ok(());
            }
            let payload = log.payload(&stored);
            mmr.push(leaf_hash(payload), &mut |_| {});
            self.bytes += frame_len(stored.len);
            if let Err(reason) = self.process(stored.seq, payload, holds, visit) {
                self.damage.get_or_insert(reason);
            }
            if let Some(own) = self.own_checkpoint.as_ref().filter(|own| own.size == mmr.size())
                && own.root != mmr.root()
            {
                self.damage.get_or_insert(format!(
                    "its first {} records do not hash to the root that its checkpoint states",
                    own.size
                ));
            }
            if seen.0 == mmr.size() && seen.1 != mmr.root() {
                self.damage.get_or_insert(format!(
                    "its first {} records differ from those read a moment ago",
                    seen.0
                ));
            }
        }
    }

    /// Processes a record.
    fn process(
        &mut self,
        seq: u64,
        payload: &[u8],
        holds: &[&Hold],
        visit: &mut dyn FnMut(u64, &Record<'_>),
    ) -> Result<(), String> {
        let record = self.tracker.process(seq, payload)?;
        visit(seq, &record);
        self.newest_time = self.newest_time.max(record.ts());
        // Log and admission number, if the exchange belongs to another log.
        let mut elsewhere = None;
        let tenant: Option<String> = match &record {
            Record::Admission(admission) => {
                self.exchanges += 1;
                self.open_exchange_tenants
                    .insert(seq, admission.tenant.to_string());
                Some(admission.tenant.to_string())
            }
            Record::Rejection(rejection) => rejection.tenant.as_ref().map(ToString::to_string),
            Record::Attempt(attempt) => match attempt.incarnation.as_deref() {
                None => self.open_exchange_tenants.get(&attempt.admission).cloned(),
                Some(log) => {
                    elsewhere = Some((log, attempt.admission));
                    None
                }
            },
            Record::Completion(completion) => match completion.incarnation.as_deref() {
                None => self.open_exchange_tenants.remove(&completion.admission),
                Some(log) => {
                    elsewhere = Some((log, completion.admission));
                    None
                }
            },
            Record::Abort(aborted) => {
                elsewhere = Some((aborted.incarnation.as_ref(), aborted.admission));
                None
            }
            Record::Analysis(analysis) => {
                let log = analysis.incarnation.as_deref();
                elsewhere = log.map(|log| (log, analysis.admission));
                Some(analysis.tenant.to_string())
            }
            Record::Open(_) | Record::Takeover(_) | Record::Seal(_) => {
                self.retained_records.push((seq, payload.to_vec()));
                None
            }
            Record::Unknown(_) => {
                self.unknown_records += 1;
                None
            }
            _ => None,
        };
        let elsewhere = elsewhere.and_then(|(log, admission)| Some((parse_incarnation(log)?, admission)));
        if tenant.is_none() {
            self.admission_logs.extend(elsewhere.map(|(log, _)| log));
        }
        for hold in holds {
            // The end record of another log's exchange does not contain the tenant.
            let unsaid = elsewhere.and(hold.scope.tenant.as_deref());
            let whose = tenant.as_deref().or(unsaid);
            if !hold.scope.matches(whose, exchange_id(&record), record.ts()) {
                continue;
            }
            if let Some((incarnation, admission)) = elsewhere {
                let hold = hold.id;
                self.hold_candidates.insert(HoldCandidate {
                    incarnation,
                    admission,
                    hold,
                });
            }
            if elsewhere.is_none() || tenant.is_some() {
                self.hold_ids.insert(hold.id);
            }
        }
        if let Some(tenant) = tenant.filter(|tenant| !self.tenants.contains(tenant)) {
            self.tenants.insert(tenant);
        }
        Ok(())
    }

    /// Finds the note that covers the end of the log.
    fn find_final_note(
        &mut self,
        storage: &dyn ReadStorage,
        own: Option<String>,
        key: &VerifyingKey,
    ) -> Result<(), EvidenceError> {
        let Some(end) = &self.end else { return Ok(()) };
        if let Some((signed, note)) = self.own_checkpoint.clone().zip(own)
            && signed == *end
        {
            self.final_note = Some((signed, note));
            return Ok(());
        }
        let Some(note) = prove::successor_note(storage, &self.dir)? else {
            return Ok(());
        };
        if let Ok(signed) = Checkpoint::verify(&note, key)
            && signed == *end
        {
            self.final_note = Some((signed, note));
        }
        Ok(())
    }
}

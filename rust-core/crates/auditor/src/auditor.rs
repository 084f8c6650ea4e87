//! The auditor. Each poll runs in this order: listing, checkpoints, records, chains, state, aggregate log.

use crate::access_log::{AccessLogHead, AccessLogReporter};
use crate::aggregate::AggregateWriter;
use crate::catalogue;
use crate::chain::{self, SuccessionGraph, Successors};
use crate::check_context::CheckContext;
use crate::configurations::ConfigurationChecks;
use crate::cosigning::CosigningCoordinator;
use crate::entry::Entry;
use crate::finding::{Finding, FindingCode, Findings, RaisedFindings, SuspectedFindings};
use crate::key_checks::{build_identity, validate_policy};
use crate::key_lineage;
use crate::ledger_statements::StatementTracker;
use crate::log::{Catalogue, Log};
use crate::log_check::{RETRY_DELAY, back_off, check_log};
use crate::log_selection::{self, ListedLogs};
use crate::log_tail::ReadBudget;
use crate::published_log::PublishedLog;
use crate::reachability::{self, WorkerState, Workers};
use crate::removal;
use crate::scrub::{NextLog, Scrub};
use crate::settings::Settings;
use crate::{AuditorError, StateStorage};
use proofgate_evidence::layout;
use proofgate_evidence::{EvidenceError, ReadStorage, Ulid, key_successions};
use proofgate_ledger::SigningKey;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Maximum number of quick checks of ended logs in one poll. A quick check covers files and
/// checkpoint, but not records.
const MAX_QUICK_CHECKS: usize = 256;

/// The result of a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PollSummary {
    /// Number of records verified for the first time.
    pub records: u64,
    /// Stored size of these records in bytes.
    pub bytes: u64,
    /// Number of records verified again.
    pub scrubbed_records: u64,
    /// Stored size of these records in bytes.
    pub scrubbed_bytes: u64,
    /// Number of completed rounds in which all logs were verified again.
    pub scrub_rounds: u64,
    /// Number of entries appended to the aggregate log.
    pub appended: u64,
    /// Number of entries in the aggregate log.
    pub entries: u64,
    /// Number of signed records that the auditor has not read yet.
    pub unread_records: u64,
    /// Number of logs that the retention job removed.
    pub removed: u64,
    /// Whether a problem was seen that must be confirmed by a second check.
    pub suspicious: bool,
    /// Whether findings were added or resolved.
    pub changed: bool,
}

/// The state of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShardStatus {
    /// Name of the shard's directory.
    pub shard: String,
    /// Number of known logs.
    pub logs: u64,
    /// Origin of the newest accepted log.
    pub origin: String,
    /// Number of records in that log.
    pub size: u64,
    /// Time at which the log's head was accepted, in unix microseconds.
    pub time: u64,
    /// Whether the log has ended.
    pub ended: bool,
    /// Microseconds since the auditor first saw the oldest checkpoint of the shard that it has not
    /// reached yet; 0 when it has reached all checkpoints.
    pub lag: u64,
    /// The signed checkpoint, as it was read.
    pub checkpoint: String,
    /// The state of the shard's worker; `None` unless each worker serves its own shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerState>,
}

/// An auditor, which follows a ledger and writes the aggregate log of its heads.
pub struct Auditor {
    volume: Arc<dyn ReadStorage>,
    state: Arc<dyn StateStorage>,
    settings: Settings,
    aggregate: AggregateWriter,
    cosigning: Arc<CosigningCoordinator>,
    catalogue: Catalogue,
    findings: Findings,
    unsaved_findings: bool,
    suspected: SuspectedFindings,
    reads: AccessLogReporter,
    /// Statements of the retention job beside the shards.
    statements: StatementTracker,
    scrub: Scrub,
    configurations: ConfigurationChecks,
    last_beat: u64,
    /// The time of the last poll; `u64::MAX` before the first poll, because stored times may come
    /// from a wrong clock.
    polled: u64,
    /// The ended log that received the last quick check.
    glanced: Option<(String, Ulid)>,
    /// The reachability of the workers; `None` unless each worker serves its own shard.
    workers: Option<Workers>,
    /// Shards that cannot be checked in this poll.
    away: BTreeSet<String>,
}

impl Auditor {
    /// Creates an auditor with an empty state.
    ///
    /// # Errors
    /// [`AuditorError::InvalidKey`] when the auditor's key is valid for the ledger, or the ledger's
    /// key for the aggregate log; [`AuditorError::StateExists`]; [`AuditorError::State`].
    pub fn create(
        volume: Arc<dyn ReadStorage>,
        state: Arc<dyn StateStorage>,
        signing: SigningKey,
        settings: Settings,
    ) -> Result<Self, AuditorError> {
        let identity = build_identity(&settings, &signing)?;
        validate_policy(&settings.policy, &signing)?;
        let policy = || Arc::clone(&settings.policy);
        match catalogue::initialize(&*state, &identity) {
            // The first start was interrupted.
            Err(AuditorError::StateExists)
                if AggregateWriter::open(Arc::clone(&state), signing.clone(), policy())
                    .is_err_and(|error| matches!(error, AuditorError::NoState)) =>
            {
                let keys = (&settings.key, &signing.verifying_key());
                catalogue::verify_identity(&*state, &identity, keys)?;
            }
            other => other?,
        }
        AggregateWriter::create(Arc::clone(&state), signing.clone(), policy())?;
        Self::open(volume, state, signing, settings)
    }

    /// Opens an auditor with an existing state.
    ///
    /// # Errors
    /// [`AuditorError::InvalidKey`]; [`AuditorError::NoState`]; [`AuditorError::StateCorrupt`]; [`AuditorError::State`].
    pub fn open(
        volume: Arc<dyn ReadStorage>,
        state: Arc<dyn StateStorage>,
        signing: SigningKey,
        mut settings: Settings,
    ) -> Result<Self, AuditorError> {
        // The polls report problems with the statements.
        if let Ok(line) = key_successions::follow_successions(&*volume, &settings.ledger, &settings.key) {
            settings.key = line;
        }
        let keys = (&settings.key, &signing.verifying_key());
        catalogue::verify_identity(&*state, &build_identity(&settings, &signing)?, keys)?;
        validate_policy(&settings.policy, &signing)?;
        let aggregate = AggregateWriter::open(Arc::clone(&state), signing, Arc::clone(&settings.policy))?;
        let cosigning = CosigningCoordinator::open(
            Arc::clone(&state),
            aggregate.published_log(),
            Arc::clone(&settings.policy),
        )?;
        let mut statements = StatementTracker::open(&*state)?;
        let (catalogue, newest_reads) = catalogue::load(
            &*state,
            &settings.ledger,
            settings.key.name(),
            (&aggregate, &mut statements),
        )?;
        let reads = AccessLogReporter::open(&*state, newest_reads.as_ref())?;
        let findings = catalogue::load_findings(&*state)?;
        Ok(Self {
            volume,
            state,
            settings,
            aggregate,
            cosigning: Arc::new(cosigning),
            catalogue,
            findings,
            unsaved_findings: false,
            suspected: SuspectedFindings::default(),
            reads,
            statements,
            scrub: Scrub::default(),
            configurations: ConfigurationChecks::default(),
            last_beat: 0,
            polled: u64::MAX,
            glanced: None,
            workers: None,
            away: BTreeSet::new(),
        })
    }

    /// Sets the reachability of workers that each serve their own shard. The volume then contains
    /// only the data of workers that answer. Must be called before each poll.
    pub fn set_workers(&mut self, workers: Workers) {
        self.workers = Some(workers);
    }

    /// Returns the published part of the aggregate log.
    #[must_use]
    pub fn published_log(&self) -> Arc<PublishedLog> {
        self.aggregate.published_log()
    }

    /// Returns the coordinator that asks witnesses for cosignatures, independently of polls.
    #[must_use]
    pub fn cosigning_coordinator(&self) -> Arc<CosigningCoordinator> {
        Arc::clone(&self.cosigning)
    }

    /// Returns all findings, oldest first.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        self.findings.all()
    }

    /// Returns the number of findings that were counted but not stored.
    #[must_use]
    pub fn omitted_finding_count(&self) -> u64 {
        self.findings.omitted_count()
    }

    /// Returns the newest reported head of an access log.
    #[must_use]
    pub fn reported_access_log_head(&self) -> Option<&AccessLogHead> {
        self.reads.reported_head()
    }

    /// Sets the head of the access log, which the next poll reports. A head that contradicts the reported one is a
    /// finding.
    pub fn set_access_log_head(&mut self, head: AccessLogHead) {
        self.reads.set_head(head);
    }

    /// Reports the reason why the access log differs from its reported head. The next poll adds the
    /// finding.
    pub fn report_access_log_change(&mut self, why: String) {
        self.reads.report_change(why);
    }

    /// Checks the ledger once: reads up to `budget` bytes of new records and `scrub` bytes of old
    /// records. `now` is in unix microseconds. If `now` is before the time of the last poll, the
    /// clock was wrong, and all delays start again.
    ///
    /// # Errors
    /// [`AuditorError::State`] and [`AuditorError::StateCorrupt`]. No result is lost, because the
    /// next poll writes it.
    pub fn poll(&mut self, now: u64, budget: u64, scrub: u64) -> Result<PollSummary, AuditorError> {
        if now < self.polled {
            self.clamp_times(now);
        }
        self.polled = now;
        let mut raised = RaisedFindings::default();
        let (mut fresh, mut again) = (ReadBudget::with_bytes(budget), ReadBudget::with_bytes(scrub));
        let mut unsettled = false;
        if let Some(there) = self.list_ledger(&mut raised) {
            key_lineage::follow_successions(
                &*self.volume,
                &self.settings.ledger,
                &mut self.settings.key,
                &mut raised,
            );
            self.cosigning.raise_claims(&mut raised);
            self.check_logs(now, &there, &mut fresh, &mut raised);
            let view = CheckContext {
                storage: &*self.volume,
                key: &self.settings.key,
                retention_key: self.settings.retention_key.as_ref(),
                now,
                stall_timeout: self.settings.stall_timeout,
            };
            // Workers that serve their own shards do not serve statements.
            if self.workers.is_none() {
                self.statements.check(&view, &self.settings.ledger, &mut raised);
            }
            for (shard, logs) in &mut self.catalogue {
                if self.away.contains(shard) {
                    continue;
                }
                let there = there.get(shard);
                chain::mark_ended(logs);
                chain::raise_clock_steps(logs, &mut raised);
                chain::check_chain(
                    &*self.volume,
                    logs,
                    there.unwrap_or(&BTreeSet::new()),
                    &mut raised,
                );
            }
            self.scrub_logs(now, &mut again, &mut raised);
            unsettled = self.check_configurations(&mut raised);
        }
        self.reads.raise(self.aggregate.name(), &mut raised);
        let delay = self.settings.recheck_delay.max(1);
        self.unsaved_findings |= self
            .suspected
            .update_findings(&raised, &mut self.findings, now, delay);
        let mut poll = PollSummary {
            records: fresh.records_read,
            bytes: fresh.bytes_read,
            scrubbed_records: again.records_read,
            scrubbed_bytes: again.bytes_read,
            scrub_rounds: self.scrub.rounds,
            changed: self.unsaved_findings,
            ..PollSummary::default()
        };
        self.back_off_failed(now);
        poll.appended = self.report_changes(now)?;
        poll.entries = self.aggregate.size();
        poll.unread_records = self
            .logs()
            .filter_map(|log| {
                log.target
                    .as_ref()
                    .map(|target| target.checkpoint.size.saturating_sub(log.size()))
            })
            .sum();
        poll.removed = self.logs().filter(|log| log.row.removed.is_some()).count() as u64;
        poll.suspicious = !self.suspected.is_empty() || self.scrub.has_suspect() || unsettled;
        Ok(poll)
    }

    /// Returns the state of each shard.
    #[must_use]
    pub fn shard_statuses(&self, now: u64) -> Vec<ShardStatus> {
        let shards = self.catalogue.iter();
        let heads = shards.filter_map(|(shard, logs)| {
            let newest = logs.values().rev().find(|log| log.row.head.is_some())?;
            let head = newest.row.head.as_ref()?;
            let since = logs
                .values()
                .filter_map(|log| Some(log.target.as_ref()?.first_seen))
                .min();
            Some(ShardStatus {
                shard: shard.clone(),
                logs: logs.len() as u64,
                origin: newest.origin.clone(),
                size: head.size,
                time: head.at,
                ended: newest.row.ended,
                lag: since.map_or(0, |since| now.saturating_sub(since)),
                checkpoint: head.note.clone(),
                worker: self
                    .workers
                    .as_ref()
                    .map(|workers| reachability::worker_state(workers, shard)),
            })
        });
        heads.collect()
    }

    /// Returns the directories and signed notes of the logs whose heads were accepted at or after
    /// `since` (unix microseconds, by the clock of the polls).
    pub fn logs_accepted_since(&self, since: u64) -> impl Iterator<Item = (&Path, &str)> {
        let heads = self.logs().filter_map(|log| Some((log, log.row.head.as_ref()?)));
        heads
            .filter(move |(_, head)| head.at >= since)
            .map(|(log, head)| (log.dir.as_path(), head.note.as_str()))
    }

    fn logs(&self) -> impl Iterator<Item = &Log> {
        self.catalogue.values().flat_map(BTreeMap::values)
    }

    /// Lists the ledger, adds new logs and reports missing logs; `None` when the ledger cannot be
    /// listed.
    fn list_ledger(&mut self, raised: &mut RaisedFindings) -> Option<ListedLogs> {
        let ledger = self.settings.key.name().to_owned();
        let shards = match layout::shards(&*self.volume, &self.settings.ledger) {
            Ok(shards) => shards,
            Err(EvidenceError::NotALog(_)) => Vec::new(),
            Err(error) => {
                // All suspicions remain open.
                raised.mark_inconclusive(&self.cosigning.origin());
                for log in self.catalogue.values().flat_map(BTreeMap::values) {
                    raised.mark_inconclusive(&log.origin);
                }
                raised.raise(FindingCode::Unreadable, &ledger, "", error.to_string());
                return None;
            }
        };
        if let Some(workers) = &self.workers {
            self.away = reachability::check_workers(workers, &self.catalogue, &ledger, raised);
        }
        Some(log_selection::update_catalogue(
            shards,
            &mut self.catalogue,
            &ledger,
            &self.away,
            raised,
        ))
    }

    /// Limits all stored times to `now`, so that no pause lasts until a time from a wrong clock.
    /// All waits start again.
    fn clamp_times(&mut self, now: u64) {
        self.last_beat = self.last_beat.min(now);
        self.suspected.clamp_times(now);
        self.scrub
            .clamp_times(now.saturating_add(self.settings.recheck_delay));
        for log in self.catalogue.values_mut().flat_map(BTreeMap::values_mut) {
            log.clamp_times(now);
        }
    }

    /// Checks every running or suspected log, the newest log of each shard first, and some of the
    /// other logs.
    fn check_logs(
        &mut self,
        now: u64,
        there: &ListedLogs,
        budget: &mut ReadBudget,
        raised: &mut RaisedFindings,
    ) {
        let view = CheckContext {
            storage: &*self.volume,
            key: &self.settings.key,
            retention_key: self.settings.retention_key.as_ref(),
            now,
            stall_timeout: self.settings.stall_timeout,
        };
        let mut due = Vec::new();
        let mut ended = Vec::new();
        let mut named = BTreeMap::new();
        for (shard, logs) in &self.catalogue {
            named.insert(shard.clone(), SuccessionGraph::from_logs(logs));
            let present = logs
                .iter()
                .filter(|(incarnation, _)| there.get(shard).is_some_and(|there| there.contains(incarnation)));
            for (back, (incarnation, log)) in present.rev().enumerate() {
                let place = (shard.clone(), *incarnation);
                match log.row.ended && !self.suspected.is_suspected(&log.origin) {
                    true => ended.push(place),
                    // Unsigned logs come last and in turn, since anyone can create them.
                    false => due.push(((back > 1, log.priority(), place.1), place)),
                }
            }
        }
        due.sort_by_key(|(order, _)| *order);
        ended.sort_unstable();
        let start = self
            .glanced
            .as_ref()
            .map_or(0, |last| ended.partition_point(|place| place <= last));
        let glances: Vec<_> = ended[start..]
            .iter()
            .chain(&ended[..start])
            .take(if self.workers.is_some() {
                reachability::MAX_QUICK_CHECKS
            } else {
                MAX_QUICK_CHECKS
            })
            .cloned()
            .collect();
        self.glanced = glances.last().cloned();
        let due = due.into_iter().map(|((old, ..), place)| (old, place));
        for (old, place) in due.chain(glances.into_iter().map(|place| (false, place))) {
            let Some(logs) = self.catalogue.get_mut(&place.0) else {
                continue;
            };
            let Some(log) = logs.get(&place.1) else { continue };
            let waits = match log.is_unsigned() {
                true => budget.is_exhausted() || now < log.retry_at.max(log.skip_until),
                false => budget.is_exhausted() && !self.suspected.is_suspected(&log.origin),
            };
            if old && waits {
                // If many logs were never read, the older logs wait for their turn.
                raised.mark_inconclusive(&log.origin);
                continue;
            }
            let successors = match log.row.ended {
                true => Successors::default(),
                false => named
                    .get(&place.0)
                    .map_or_else(Successors::default, |named| named.successors_of(logs, place.1)),
            };
            if let Some(log) = logs.get_mut(&place.1) {
                check_log(&view, log, &successors, budget, raised);
                // If the log was just accepted, it may name other logs.
                named.entry(place.0).or_default().add(log);
            }
        }
    }

    /// Checks archived configurations. Returns whether some of them were never checked.
    fn check_configurations(&mut self, raised: &mut RaisedFindings) -> bool {
        if !self.settings.check_configurations {
            return false;
        }
        let logs = self.catalogue.values().flat_map(BTreeMap::values);
        self.configurations
            .check(&*self.volume, &self.settings.ledger, logs, raised);
        !self.configurations.pass_completed
    }

    fn scrub_logs(&mut self, now: u64, budget: &mut ReadBudget, raised: &mut RaisedFindings) {
        // At most one round per poll.
        for _ in 0..=self.logs().count() {
            if budget.is_exhausted() || self.scrub.is_retry_pending(now) {
                return;
            }
            let places = self.catalogue.iter().flat_map(|(shard, logs)| {
                let accepted = logs.iter().filter(|(_, log)| log.row.head.is_some());
                accepted.map(move |(incarnation, _)| (shard, incarnation))
            });
            let NextLog::Read(place) = self.scrub.next(places) else {
                return;
            };
            let logs = self.catalogue.get_mut(&place.0);
            let log = logs.and_then(|logs| logs.get_mut(&place.1));
            let Some(log) = log.filter(|_| !self.away.contains(&place.0)) else {
                self.scrub.skip(place);
                continue;
            };
            let view = CheckContext {
                storage: &*self.volume,
                key: &self.settings.key,
                retention_key: self.settings.retention_key.as_ref(),
                now,
                stall_timeout: self.settings.stall_timeout,
            };
            // The log may have been removed since the last check. The next listing reports a
            // missing directory.
            if removal::check_removal(&view, log, raised).unwrap_or(true) {
                self.scrub.skip(place);
                continue;
            }
            let delay = self.settings.recheck_delay.max(1);
            self.scrub.read(&*self.volume, log, budget, (now, delay), raised);
        }
    }

    /// Pauses logs with a finding that their records do not verify, and skips unsigned logs whose
    /// checkpoint is refused.
    fn back_off_failed(&mut self, now: u64) {
        let found = self.findings.keys();
        let (mut of_records, mut of_checkpoints) = (BTreeSet::new(), BTreeSet::new());
        for (code, origin) in found {
            match code {
                FindingCode::RecordsChanged
                | FindingCode::RecordsDamaged
                | FindingCode::Truncated
                | FindingCode::PlantedLog => {
                    of_records.insert(origin);
                }
                FindingCode::CheckpointRefused | FindingCode::CheckpointForeign => {
                    of_checkpoints.insert(origin);
                }
                _ => {}
            }
        }
        for log in self.catalogue.values_mut().flat_map(BTreeMap::values_mut) {
            if of_records.contains(&log.origin) {
                back_off(log, now);
            }
            if log.skip_until <= now && log.is_unsigned() && of_checkpoints.contains(&log.origin) {
                log.skip_until = now.saturating_add(RETRY_DELAY);
            }
        }
    }

    /// Writes all changes. Findings and rows are written first, so that the state contains
    /// everything that the aggregate log states.
    fn report_changes(&mut self, now: u64) -> Result<u64, AuditorError> {
        if self.unsaved_findings {
            catalogue::save_findings(&*self.state, &self.findings)?;
            self.unsaved_findings = false;
        }
        self.aggregate.recover()?;
        let beat = now.saturating_sub(self.last_beat) >= self.settings.heartbeat;
        let due = |log: &Log| Entry::due_for_log(log, beat);
        let entries: Vec<Entry> = self.logs().filter_map(due).collect();
        let mut statements: Vec<Entry> = self.logs().flat_map(|log| log.pending_entries(now)).collect();
        statements.extend(self.statements.pending_entries(self.settings.key.name(), now));
        let reads = self.reads.entry(&self.aggregate, beat, now)?;
        if !beat && entries.is_empty() && statements.is_empty() && reads.is_none() {
            return Ok(0);
        }
        // Write this state before the rows, because the next start searches entries of other kinds
        // only after the newest entry that the rows contain.
        self.reads.save(&*self.state)?;
        self.statements.save(&*self.state, &self.catalogue, beat)?;
        catalogue::save(&*self.state, &mut self.catalogue)?;
        let first = self.aggregate.size();
        let told = entries.iter().chain(&statements).chain(&reads);
        let encoded: Vec<Vec<u8>> = told.map(Entry::encode).collect::<Result<_, _>>()?;
        self.aggregate.append(&encoded)?;
        let logs = self.catalogue.values_mut().flat_map(BTreeMap::values_mut);
        let due = logs.filter(|log| Entry::due_for_log(log, beat).is_some());
        for ((log, entry), index) in due.zip(&entries).zip(first..) {
            log.row.told = Some(entry.to_aggregated_log(index));
            log.dirty = true;
        }
        let mut index = first + entries.len() as u64;
        for log in self.catalogue.values_mut().flat_map(BTreeMap::values_mut) {
            let count = log.erasures.pending.len() as u64;
            log.mark_reported(index);
            index += count;
        }
        self.statements.mark_reported();
        if reads.is_some() {
            self.reads.mark_reported();
        }
        if beat {
            self.last_beat = now;
        }
        Ok(encoded.len() as u64)
    }
}

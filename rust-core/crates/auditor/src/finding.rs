//! Findings of an auditor.

use proofgate_evidence::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Most findings that are stored. Further findings are only counted.
const MAX_FINDINGS: usize = 1000;
/// Most omitted findings whose keys are stored, so that no finding is counted twice.
const MAX_OMITTED: usize = 10_000;
/// Most characters of a message.
const MAX_MESSAGE_CHARS: usize = 512;

/// The kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingCode {
    /// A shard that had logs is missing.
    ShardMissing,
    /// A log that was accepted, or that an accepted log names, is missing.
    LogMissing,
    /// The checkpoint of a log that had one is missing.
    CheckpointMissing,
    /// A checkpoint is invalid, or not signed by the ledger's key.
    CheckpointRefused,
    /// A checkpoint, or the start of a log, belongs to another log.
    CheckpointForeign,
    /// A checkpoint covers fewer records than an accepted checkpoint.
    Rollback,
    /// A size of a log was signed with two different roots.
    Equivocation,
    /// A log grew after its seal.
    SealedLogGrew,
    /// The records do not lead to the signed root.
    RecordsChanged,
    /// Covered records are damaged or missing.
    RecordsDamaged,
    /// A log ends before its signed size, or before the end that its successor recorded.
    Truncated,
    /// A log served requests but has no valid checkpoint.
    PlantedLog,
    /// A tombstone is invalid, not signed by the retention key, or names a head that differs from
    /// the accepted head.
    TombstoneRefused,
    /// A statement of a hold, an erasure or a destroyed key is invalid, or not signed by the retention key.
    StatementRefused,
    /// A statement's time is before the events to which it refers, or before a check at which the
    /// statement did not exist yet.
    StatementBackdated,
    /// A statement's time is ahead of the auditor's clock.
    StatementPostdated,
    /// A reported statement is missing or was replaced.
    StatementMissing,
    /// A file among the ledger's statements of key succession was not signed by both keys, or statements contradict each
    /// other.
    KeySuccessionRefused,
    /// The configuration that a record names by its digest is missing.
    ConfigurationMissing,
    /// The file of a configuration that a record names does not match the digest.
    ConfigurationChanged,
    /// A log's statement about its predecessor is not true.
    BrokenChain,
    /// Two logs that served name one predecessor.
    Fork,
    /// A log was written to after the end that its successor recorded.
    TwoWriters,
    /// A log names a predecessor that the auditor has never seen.
    PredecessorMissing,
    /// A log ended and no log names it, although later logs exist.
    NoSuccessor,
    /// There are too many logs without an accepted head to check them all.
    TooManyLogs,
    /// The clock of a worker was set by a minute or more: the times of its records jump.
    ClockStep,
    /// Records wait for a checkpoint.
    Stalled,
    /// A file or directory cannot be read.
    Unreadable,
    /// A worker that serves its own shard does not answer, or no longer exists and did not seal its
    /// log.
    WorkerUnreachable,
    /// The access log differs from its reported head.
    AccessLogChanged,
    /// A witness has cosigned more entries of the aggregate log than exist.
    AggregateRollback,
    /// A witness has cosigned another history of the aggregate log.
    AggregateFork,
}

impl FindingCode {
    /// Returns the severity of such a finding.
    #[must_use]
    pub fn verdict(self) -> Verdict {
        match self {
            Self::PredecessorMissing
            | Self::NoSuccessor
            | Self::TooManyLogs
            | Self::ClockStep
            | Self::ConfigurationMissing
            | Self::Stalled
            | Self::Unreadable
            | Self::WorkerUnreachable => Verdict::Incomplete,
            Self::CheckpointMissing
            | Self::CheckpointRefused
            | Self::RecordsChanged
            | Self::RecordsDamaged
            | Self::PlantedLog
            | Self::ConfigurationChanged
            | Self::TombstoneRefused
            | Self::StatementRefused
            | Self::StatementBackdated
            | Self::StatementPostdated
            | Self::KeySuccessionRefused => Verdict::Invalid,
            _ => Verdict::Diverged,
        }
    }

    /// Returns the priority of such a finding when not all findings can be stored. Findings that
    /// anyone who can create files could cause have a lower priority than findings about accepted
    /// logs.
    fn weight(self) -> u8 {
        match self {
            Self::PlantedLog
            | Self::CheckpointForeign
            | Self::CheckpointRefused
            | Self::TombstoneRefused
            | Self::StatementRefused
            | Self::KeySuccessionRefused => 1,
            code if code.verdict() == Verdict::Incomplete => 0,
            _ => 2,
        }
    }

    /// Returns whether such a finding describes a state that may end. All other findings are
    /// evidence of an event, and later states do not resolve them. A finding about a witness's
    /// claim remains while the witness makes the claim.
    #[must_use]
    pub fn is_transient(self) -> bool {
        self.verdict() == Verdict::Incomplete || matches!(self, Self::AggregateRollback | Self::AggregateFork)
    }
}

/// The key of a finding: its code, and the origin of a log, or a shard as `<ledger>/<shard>`.
pub(crate) type FindingKey = (FindingCode, String);

/// A confirmed problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The kind of the problem.
    pub code: FindingCode,
    /// The origin of the log, or of the shard.
    pub origin: String,
    /// Name of the shard's directory.
    pub shard: String,
    /// Time at which the problem was first seen, in unix microseconds.
    pub since: u64,
    /// A sentence that describes the problem.
    pub message: String,
}

impl Finding {
    fn key(&self) -> FindingKey {
        (self.code, self.origin.clone())
    }
}

/// All findings.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Findings {
    kept: Vec<Finding>,
    /// Number of omitted findings in a state of an older version, which did not store their keys.
    uncounted: u64,
    /// Keys of omitted findings.
    #[serde(default)]
    left_out: BTreeSet<FindingKey>,
    #[serde(skip)]
    index: BTreeSet<FindingKey>,
    /// The lowest weight among the stored findings.
    #[serde(skip)]
    lightest: u8,
}

impl Findings {
    /// Rebuilds the fields that are not part of the stored state.
    pub(crate) fn rebuild_index(mut self) -> Self {
        self.index = self.kept.iter().map(Finding::key).collect();
        self.update_lightest();
        self
    }

    pub(crate) fn all(&self) -> &[Finding] {
        &self.kept
    }

    pub(crate) fn omitted_count(&self) -> u64 {
        self.uncounted.saturating_add(self.left_out.len() as u64)
    }

    /// Returns the keys of all findings, including omitted findings.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &FindingKey> {
        self.index.iter().chain(&self.left_out)
    }

    fn update_lightest(&mut self) {
        let weights = self.kept.iter().map(|kept| kept.code.weight());
        self.lightest = weights.min().unwrap_or_default();
    }

    fn has_capacity(&self, code: FindingCode) -> bool {
        self.kept.len() < MAX_FINDINGS || self.lightest < code.weight()
    }

    /// Returns whether adding this finding again would change nothing.
    fn contains(&self, key: &FindingKey) -> bool {
        self.index.contains(key) || self.left_out.contains(key) && !self.has_capacity(key.0)
    }

    /// Adds a finding. Returns whether anything changed.
    fn add(&mut self, finding: Finding) -> bool {
        let key = finding.key();
        if !self.has_capacity(finding.code) {
            return self.omit(key);
        }
        if self.kept.len() >= MAX_FINDINGS
            && let Some(newest) = self
                .kept
                .iter()
                .rposition(|kept| kept.code.weight() == self.lightest)
        {
            let lighter = self.kept.remove(newest).key();
            self.index.remove(&lighter);
            self.omit(lighter);
        }
        self.left_out.remove(&key);
        self.index.insert(key);
        self.kept.push(finding);
        self.update_lightest();
        true
    }

    fn omit(&mut self, key: FindingKey) -> bool {
        self.left_out.len() < MAX_OMITTED && self.left_out.insert(key)
    }

    /// Removes findings about states that have ended. Returns whether there were any.
    fn remove_resolved(&mut self, stays: impl Fn(&FindingKey) -> bool) -> bool {
        let before = self.index.len() + self.left_out.len();
        let keeps = |key: &FindingKey| !key.0.is_transient() || stays(key);
        self.kept.retain(|kept| keeps(&kept.key()));
        self.index.retain(keeps);
        self.left_out.retain(keeps);
        self.update_lightest();
        self.index.len() + self.left_out.len() != before
    }
}

/// The suspected problems of one poll.
#[derive(Debug, Default)]
pub(crate) struct RaisedFindings {
    seen: BTreeMap<FindingKey, (String, String)>,
    /// Logs that this poll could not fully check. Suspicions about them remain open.
    inconclusive: BTreeSet<String>,
    /// Suspicions that a second check has already confirmed.
    confirmed: BTreeSet<FindingKey>,
}

impl RaisedFindings {
    pub(crate) fn raise(&mut self, code: FindingCode, origin: &str, shard: &str, message: String) {
        self.seen
            .entry((code, origin.to_owned()))
            .or_insert_with(|| (shard.to_owned(), truncate_message(message)));
    }

    /// Same as `raise`, for a problem that needs no second check.
    pub(crate) fn raise_confirmed(&mut self, code: FindingCode, origin: &str, shard: &str, message: String) {
        self.raise(code, origin, shard, message);
        self.confirmed.insert((code, origin.to_owned()));
    }

    pub(crate) fn mark_inconclusive(&mut self, origin: &str) {
        if !self.inconclusive.contains(origin) {
            self.inconclusive.insert(origin.to_owned());
        }
    }
}

/// Truncates a long message, because it may contain text from someone without a key.
fn truncate_message(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE_CHARS)
        && let Some((last, _)) = message[..end].char_indices().next_back()
    {
        message.truncate(last);
        message.push('\u{2026}');
    }
    message
}

/// Suspected problems that are not confirmed yet, each with the time since when it is suspected.
#[derive(Debug, Default)]
pub(crate) struct SuspectedFindings {
    first_seen: BTreeMap<FindingKey, u64>,
    /// The origins of the logs that are suspected.
    origins: BTreeSet<String>,
}

impl SuspectedFindings {
    pub(crate) fn is_empty(&self) -> bool {
        self.first_seen.is_empty()
    }

    /// Returns whether there is a suspicion about a log.
    pub(crate) fn is_suspected(&self, origin: &str) -> bool {
        self.origins.contains(origin)
    }

    /// Limits the times of suspicions to `now`.
    pub(crate) fn clamp_times(&mut self, now: u64) {
        for since in self.first_seen.values_mut() {
            *since = now.min(*since);
        }
    }

    /// Processes the problems that a poll has raised. A problem that is still raised `delay`
    /// microseconds after the first time becomes a finding. A suspicion that is no longer raised is
    /// dropped. Returns whether the findings changed.
    pub(crate) fn update_findings(
        &mut self,
        raised: &RaisedFindings,
        findings: &mut Findings,
        now: u64,
        delay: u64,
    ) -> bool {
        let mut changed = false;
        for (key, (shard, message)) in &raised.seen {
            if findings.contains(key) {
                continue;
            }
            let since = *self.first_seen.entry(key.clone()).or_insert(now);
            if raised.confirmed.contains(key) || now.saturating_sub(since) >= delay {
                self.first_seen.remove(key);
                changed |= findings.add(Finding {
                    code: key.0,
                    origin: key.1.clone(),
                    shard: shard.clone(),
                    since,
                    message: message.clone(),
                });
            }
        }
        let stays = |key: &FindingKey| raised.seen.contains_key(key) || raised.inconclusive.contains(&key.1);
        self.first_seen.retain(|key, _| stays(key));
        self.origins = self.first_seen.keys().map(|(_, origin)| origin.clone()).collect();
        changed | findings.remove_resolved(stays)
    }
}

#[cfg(test)]
mod tests {
    use super::{FindingCode, Findings, MAX_FINDINGS, MAX_MESSAGE_CHARS, RaisedFindings, SuspectedFindings};

    /// Returns the largest number of stored findings, about logs that an attacker created, and the
    /// suspicions that led to them.
    fn full() -> (SuspectedFindings, Findings) {
        let (mut suspected, mut findings) = (SuspectedFindings::default(), Findings::default());
        let mut planted = RaisedFindings::default();
        for number in 0..MAX_FINDINGS {
            planted.raise(
                FindingCode::PlantedLog,
                &format!("a/0/{number}"),
                "0",
                "it served".to_owned(),
            );
        }
        suspected.update_findings(&planted, &mut findings, 0, 0);
        assert_eq!(
            (findings.all().len(), findings.omitted_count()),
            (MAX_FINDINGS, 0)
        );
        (suspected, findings)
    }

    #[test]
    fn a_finding_that_finds_no_room_is_counted_once() {
        let (mut suspected, mut findings) = full();
        for (now, changes) in [(0, false), (5, true), (10, false), (15, false)] {
            let changed = suspected.update_findings(&raised(FindingCode::PlantedLog), &mut findings, now, 5);
            assert_eq!(changed, changes, "at {now}");
        }
        assert_eq!(
            (findings.all().len(), findings.omitted_count()),
            (MAX_FINDINGS, 1)
        );
        assert!(suspected.is_empty());
        let stored = serde_json::to_vec(&findings).unwrap();
        let mut again = serde_json::from_slice::<Findings>(&stored)
            .unwrap()
            .rebuild_index();
        suspected.update_findings(&raised(FindingCode::PlantedLog), &mut again, 20, 0);
        assert_eq!(
            (again.all().len(), again.omitted_count()),
            (MAX_FINDINGS, 1),
            "a restart"
        );
    }

    #[test]
    fn what_is_worse_takes_the_place_of_what_anybody_can_bring_about() {
        let (mut suspected, mut findings) = full();
        for code in [
            FindingCode::Rollback,
            FindingCode::RecordsChanged,
            FindingCode::Stalled,
        ] {
            suspected.update_findings(&raised(code), &mut findings, 1, 0);
        }
        let worse = |code| findings.all().iter().any(|found| found.code == code);
        assert!(
            worse(FindingCode::Rollback)
                && worse(FindingCode::RecordsChanged)
                && !worse(FindingCode::Stalled)
        );
        assert_eq!(findings.all().len(), MAX_FINDINGS);
        // The state that was omitted has ended.
        suspected.update_findings(&RaisedFindings::default(), &mut findings, 2, 0);
        assert_eq!(findings.omitted_count(), 2);
    }

    #[test]
    fn a_state_that_found_no_room_is_kept_once_there_is_some() {
        let (mut suspected, mut findings) = (SuspectedFindings::default(), Findings::default());
        let stalled = |numbers: std::ops::Range<usize>| {
            let mut raised = RaisedFindings::default();
            for number in numbers {
                raised.raise(FindingCode::Stalled, &format!("a/0/{number}"), "0", String::new());
            }
            raised
        };
        suspected.update_findings(&stalled(0..MAX_FINDINGS + 1), &mut findings, 0, 0);
        assert_eq!(
            (findings.all().len(), findings.omitted_count()),
            (MAX_FINDINGS, 1)
        );
        for _ in 0..2 {
            suspected.update_findings(&stalled(1..MAX_FINDINGS + 1), &mut findings, 1, 0);
        }
        assert_eq!(
            (findings.all().len(), findings.omitted_count()),
            (MAX_FINDINGS, 0)
        );
    }

    #[test]
    fn a_message_that_repeats_what_somebody_wrote_is_cut() {
        let (mut suspected, mut findings) = (SuspectedFindings::default(), Findings::default());
        let mut long = RaisedFindings::default();
        long.raise(
            FindingCode::RecordsChanged,
            "a/0/X",
            "0",
            "\u{e9}".repeat(200_000),
        );
        long.raise(
            FindingCode::RecordsChanged,
            "a/0/Y",
            "0",
            "\u{e9}".repeat(MAX_MESSAGE_CHARS),
        );
        suspected.update_findings(&long, &mut findings, 0, 0);
        for found in findings.all() {
            assert_eq!(found.message.chars().count(), MAX_MESSAGE_CHARS);
        }
        assert!(findings.all()[0].message.ends_with('\u{2026}'));
        assert!(!findings.all()[1].message.ends_with('\u{2026}'));
    }

    fn raised(code: FindingCode) -> RaisedFindings {
        let mut raised = RaisedFindings::default();
        raised.raise(code, "a/0/X", "0", "something".to_owned());
        raised
    }

    #[test]
    fn what_looks_wrong_once_is_found_when_it_still_does_after_the_delay() {
        let (mut suspected, mut findings) = (SuspectedFindings::default(), Findings::default());
        for (now, found) in [(10, 0), (14, 0), (15, 1), (16, 1)] {
            suspected.update_findings(&raised(FindingCode::Rollback), &mut findings, now, 5);
            assert_eq!(findings.all().len(), found, "at {now}");
        }
        assert_eq!(findings.all()[0].since, 10);
    }

    #[test]
    fn what_looks_right_again_is_forgotten() {
        let (mut suspected, mut findings) = (SuspectedFindings::default(), Findings::default());
        suspected.update_findings(&raised(FindingCode::Rollback), &mut findings, 10, 5);
        suspected.update_findings(&RaisedFindings::default(), &mut findings, 12, 5);
        suspected.update_findings(&raised(FindingCode::Rollback), &mut findings, 20, 5);
        assert!(findings.all().is_empty());
    }

    #[test]
    fn evidence_stays_and_a_state_passes() {
        let (mut suspected, mut findings) = (SuspectedFindings::default(), Findings::default());
        for code in [FindingCode::Fork, FindingCode::Stalled] {
            suspected.update_findings(&raised(code), &mut findings, 1, 0);
        }
        assert_eq!(findings.all().len(), 2);
        assert!(suspected.update_findings(&RaisedFindings::default(), &mut findings, 2, 0));
        assert_eq!(
            (findings.all().len(), findings.all()[0].code),
            (1, FindingCode::Fork)
        );
    }
}

//! What an auditor has found.

use proofgate_evidence::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Findings that are kept; more of them are counted.
const MAX_FINDINGS: usize = 1000;
/// Of so many more it is known which they are, so that none is counted twice.
const MAX_OMITTED: usize = 10_000;
/// Characters of a message.
const MAX_MESSAGE_CHARS: usize = 512;

/// What kind of thing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingCode {
    /// A shard that had logs is not there.
    ShardMissing,
    /// A log that was accepted, or is named by one that was, is not there.
    LogMissing,
    /// The checkpoint of a log that had one is gone.
    CheckpointMissing,
    /// A checkpoint is no checkpoint, or nobody with the ledger's key signed it.
    CheckpointRefused,
    /// A checkpoint, or the beginning of a log, is another log's.
    CheckpointForeign,
    /// A checkpoint covers less than one that was accepted.
    Rollback,
    /// One size of a log was signed with two roots.
    Equivocation,
    /// A log grew behind its seal.
    SealedLogGrew,
    /// The records do not lead to the root that was signed.
    RecordsChanged,
    /// Bytes of covered records are damaged, or some of them are missing.
    RecordsDamaged,
    /// A log ends before what was signed, or what its successor recorded.
    Truncated,
    /// A log that served and that nobody signed.
    PlantedLog,
    /// A tombstone that is none, is not by the retention key, or names another head than the one that was accepted.
    TombstoneRefused,
    /// A statement of a hold, an erasure or a destroyed key that is none, or is not by the retention key.
    StatementRefused,
    /// A statement gives a time before what it speaks of, or was not there when the auditor looked later than that.
    StatementBackdated,
    /// A statement gives a time ahead of the auditor's clock.
    StatementPostdated,
    /// A statement that was told is not there, or others are.
    StatementMissing,
    /// A file among the ledger's statements of key succession is none that both keys signed, or they contradict each other.
    KeySuccessionRefused,
    /// A record names a configuration by its digest that is not there.
    ConfigurationMissing,
    /// What stands in the place of a configuration that a record names is not what the digest is of.
    ConfigurationChanged,
    /// What a log says of the one before is not so.
    BrokenChain,
    /// Two logs that served name one predecessor.
    Fork,
    /// A log went on behind the end that its successor recorded.
    TwoWriters,
    /// A log names a predecessor that the auditor has never seen.
    PredecessorMissing,
    /// A log ended and none names it, though later ones are there.
    NoSuccessor,
    /// There are more logs of which none was accepted than are looked at.
    TooManyLogs,
    /// The clock of a worker was set by a minute or more: times of its records jump.
    ClockStep,
    /// Records wait for a checkpoint.
    Stalled,
    /// A file or directory cannot be read.
    Unreadable,
    /// A worker that serves its shard itself does not answer, or is gone without a seal.
    WorkerUnreachable,
    /// The log of who read what is not the one that was told.
    AccessLogChanged,
    /// A witness has cosigned more of the aggregate log than there is.
    AggregateRollback,
    /// A witness has cosigned another history of the aggregate log.
    AggregateFork,
}

impl FindingCode {
    /// How bad it is.
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

    /// What it counts where there is room for some findings only. What anybody brings about who makes directories and files
    /// of his own counts less than what became of logs that were accepted.
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

    /// Whether it is a state that may end. All else is evidence: it happened, whatever is there later. What a witness says is
    /// its word, and stands for as long as it says so.
    #[must_use]
    pub fn is_transient(self) -> bool {
        self.verdict() == Verdict::Incomplete || matches!(self, Self::AggregateRollback | Self::AggregateFork)
    }
}

/// What a finding is about: a log's origin, or a shard as `<ledger>/<shard>`.
pub(crate) type FindingKey = (FindingCode, String);

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind of thing.
    pub code: FindingCode,
    /// The origin of the log, or of the shard.
    pub origin: String,
    /// The shard: the name of its directory.
    pub shard: String,
    /// When it was first seen, in unix microseconds.
    pub since: u64,
    /// What is wrong, in a sentence.
    pub message: String,
}

impl Finding {
    fn key(&self) -> FindingKey {
        (self.code, self.origin.clone())
    }
}

/// All that is known to be wrong.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Findings {
    kept: Vec<Finding>,
    /// Of a state from before their keys were kept: those that found no room.
    uncounted: u64,
    /// Those that found no room.
    #[serde(default)]
    left_out: BTreeSet<FindingKey>,
    #[serde(skip)]
    index: BTreeSet<FindingKey>,
    /// The least weight of those that are kept.
    #[serde(skip)]
    lightest: u8,
}

impl Findings {
    /// Makes what is not stored.
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

    /// What all are about, also those that found no room.
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

    /// Whether nothing would change if it was found again.
    fn contains(&self, key: &FindingKey) -> bool {
        self.index.contains(key) || self.left_out.contains(key) && !self.has_capacity(key.0)
    }

    /// Takes a finding; whether anything changed.
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

    /// Forgets states that have ended; whether there were any.
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

/// What looks wrong in one poll.
#[derive(Debug, Default)]
pub(crate) struct RaisedFindings {
    seen: BTreeMap<FindingKey, (String, String)>,
    /// Logs of which this poll cannot tell everything, so that what was suspected of them stays so.
    inconclusive: BTreeSet<String>,
    /// Suspicions that a second look has confirmed already.
    confirmed: BTreeSet<FindingKey>,
}

impl RaisedFindings {
    pub(crate) fn raise(&mut self, code: FindingCode, origin: &str, shard: &str, message: String) {
        self.seen
            .entry((code, origin.to_owned()))
            .or_insert_with(|| (shard.to_owned(), truncate_message(message)));
    }

    /// As `raise`, of what needs no second look.
    pub(crate) fn raise_confirmed(&mut self, code: FindingCode, origin: &str, shard: &str, message: String) {
        self.raise(code, origin, shard, message);
        self.confirmed.insert((code, origin.to_owned()));
    }

    pub(crate) fn unsettled(&mut self, origin: &str) {
        if !self.inconclusive.contains(origin) {
            self.inconclusive.insert(origin.to_owned());
        }
    }
}

/// A message without what is too long: it may repeat what somebody wrote who has no key.
fn truncate_message(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE_CHARS)
        && let Some((last, _)) = message[..end].char_indices().next_back()
    {
        message.truncate(last);
        message.push('\u{2026}');
    }
    message
}

/// What looked wrong once, and since when.
#[derive(Debug, Default)]
pub(crate) struct SuspectedFindings {
    first_seen: BTreeMap<FindingKey, u64>,
    /// What they are about.
    origins: BTreeSet<String>,
}

impl SuspectedFindings {
    pub(crate) fn is_empty(&self) -> bool {
        self.first_seen.is_empty()
    }

    /// Whether anything is suspected of a log.
    pub(crate) fn is_suspected(&self, origin: &str) -> bool {
        self.origins.contains(origin)
    }

    /// Nothing is suspected since a time behind `now`.
    pub(crate) fn clamp_times(&mut self, now: u64) {
        for since in self.first_seen.values_mut() {
            *since = now.min(*since);
        }
    }

    /// Takes what a poll has raised: what still looks wrong `delay` microseconds after it first did is found, and what
    /// looks right again is forgotten. Whether the findings changed.
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

    /// As many findings as are kept, of logs that somebody planted; and the suspicions from which they came.
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
        // The state that found no room has ended.
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

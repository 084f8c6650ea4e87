//! What an auditor has found.

use proofgate_evidence::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Findings that are kept; more of them are counted.
const MOST: usize = 1000;
/// Of so many more it is known which they are, so that none is counted twice.
const MOST_LEFT_OUT: usize = 10_000;
/// Characters of a message.
const MOST_CHARS: usize = 512;

/// What kind of thing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
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

impl Code {
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
    pub fn passes(self) -> bool {
        self.verdict() == Verdict::Incomplete || matches!(self, Self::AggregateRollback | Self::AggregateFork)
    }
}

/// What a finding is about: a log's origin, or a shard as `<ledger>/<shard>`.
pub(crate) type Key = (Code, String);

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind of thing.
    pub code: Code,
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
    fn key(&self) -> Key {
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
    left_out: BTreeSet<Key>,
    #[serde(skip)]
    index: BTreeSet<Key>,
    /// The least weight of those that are kept.
    #[serde(skip)]
    lightest: u8,
}

impl Findings {
    /// Makes what is not stored.
    pub(crate) fn indexed(mut self) -> Self {
        self.index = self.kept.iter().map(Finding::key).collect();
        self.weigh_kept();
        self
    }

    pub(crate) fn all(&self) -> &[Finding] {
        &self.kept
    }

    pub(crate) fn left_out(&self) -> u64 {
        self.uncounted.saturating_add(self.left_out.len() as u64)
    }

    /// What all are about, also those that found no room.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.index.iter().chain(&self.left_out)
    }

    fn weigh_kept(&mut self) {
        let weights = self.kept.iter().map(|kept| kept.code.weight());
        self.lightest = weights.min().unwrap_or_default();
    }

    fn has_room(&self, code: Code) -> bool {
        self.kept.len() < MOST || self.lightest < code.weight()
    }

    /// Whether nothing would change if it was found again.
    fn knows(&self, key: &Key) -> bool {
        self.index.contains(key) || self.left_out.contains(key) && !self.has_room(key.0)
    }

    /// Takes a finding; whether anything changed.
    fn add(&mut self, finding: Finding) -> bool {
        let key = finding.key();
        if !self.has_room(finding.code) {
            return self.leave_out(key);
        }
        if self.kept.len() >= MOST
            && let Some(newest) = self
                .kept
                .iter()
                .rposition(|kept| kept.code.weight() == self.lightest)
        {
            let lighter = self.kept.remove(newest).key();
            self.index.remove(&lighter);
            self.leave_out(lighter);
        }
        self.left_out.remove(&key);
        self.index.insert(key);
        self.kept.push(finding);
        self.weigh_kept();
        true
    }

    fn leave_out(&mut self, key: Key) -> bool {
        self.left_out.len() < MOST_LEFT_OUT && self.left_out.insert(key)
    }

    /// Forgets states that have ended; whether there were any.
    fn pass(&mut self, stays: impl Fn(&Key) -> bool) -> bool {
        let before = self.index.len() + self.left_out.len();
        let keeps = |key: &Key| !key.0.passes() || stays(key);
        self.kept.retain(|kept| keeps(&kept.key()));
        self.index.retain(keeps);
        self.left_out.retain(keeps);
        self.weigh_kept();
        self.index.len() + self.left_out.len() != before
    }
}

/// What looks wrong in one poll.
#[derive(Debug, Default)]
pub(crate) struct Raised {
    seen: BTreeMap<Key, (String, String)>,
    /// Logs of which this poll cannot tell everything, so that what was suspected of them stays so.
    unsettled: BTreeSet<String>,
    /// Suspicions that a second look has confirmed already.
    sure: BTreeSet<Key>,
}

impl Raised {
    pub(crate) fn raise(&mut self, code: Code, origin: &str, shard: &str, message: String) {
        self.seen
            .entry((code, origin.to_owned()))
            .or_insert_with(|| (shard.to_owned(), cut(message)));
    }

    /// As `raise`, of what needs no second look.
    pub(crate) fn raise_now(&mut self, code: Code, origin: &str, shard: &str, message: String) {
        self.raise(code, origin, shard, message);
        self.sure.insert((code, origin.to_owned()));
    }

    pub(crate) fn unsettled(&mut self, origin: &str) {
        if !self.unsettled.contains(origin) {
            self.unsettled.insert(origin.to_owned());
        }
    }
}

/// A message without what is too long: it may repeat what somebody wrote who has no key.
fn cut(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(MOST_CHARS)
        && let Some((last, _)) = message[..end].char_indices().next_back()
    {
        message.truncate(last);
        message.push('\u{2026}');
    }
    message
}

/// What looked wrong once, and since when.
#[derive(Debug, Default)]
pub(crate) struct Suspected {
    since: BTreeMap<Key, u64>,
    /// What they are about.
    origins: BTreeSet<String>,
}

impl Suspected {
    pub(crate) fn is_empty(&self) -> bool {
        self.since.is_empty()
    }

    /// Whether anything is suspected of a log.
    pub(crate) fn of(&self, origin: &str) -> bool {
        self.origins.contains(origin)
    }

    /// Nothing is suspected since a time behind `now`.
    pub(crate) fn turn_back(&mut self, now: u64) {
        for since in self.since.values_mut() {
            *since = now.min(*since);
        }
    }

    /// Takes what a poll has raised: what still looks wrong `delay` microseconds after it first did is found, and what
    /// looks right again is forgotten. Whether the findings changed.
    pub(crate) fn weigh(&mut self, raised: &Raised, findings: &mut Findings, now: u64, delay: u64) -> bool {
        let mut changed = false;
        for (key, (shard, message)) in &raised.seen {
            if findings.knows(key) {
                continue;
            }
            let since = *self.since.entry(key.clone()).or_insert(now);
            if raised.sure.contains(key) || now.saturating_sub(since) >= delay {
                self.since.remove(key);
                changed |= findings.add(Finding {
                    code: key.0,
                    origin: key.1.clone(),
                    shard: shard.clone(),
                    since,
                    message: message.clone(),
                });
            }
        }
        let stays = |key: &Key| raised.seen.contains_key(key) || raised.unsettled.contains(&key.1);
        self.since.retain(|key, _| stays(key));
        self.origins = self.since.keys().map(|(_, origin)| origin.clone()).collect();
        changed | findings.pass(stays)
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, Findings, MOST, MOST_CHARS, Raised, Suspected};

    /// As many findings as are kept, of logs that somebody planted; and the suspicions from which they came.
    fn full() -> (Suspected, Findings) {
        let (mut suspected, mut findings) = (Suspected::default(), Findings::default());
        let mut planted = Raised::default();
        for number in 0..MOST {
            planted.raise(
                Code::PlantedLog,
                &format!("a/0/{number}"),
                "0",
                "it served".to_owned(),
            );
        }
        suspected.weigh(&planted, &mut findings, 0, 0);
        assert_eq!((findings.all().len(), findings.left_out()), (MOST, 0));
        (suspected, findings)
    }

    #[test]
    fn a_finding_that_finds_no_room_is_counted_once() {
        let (mut suspected, mut findings) = full();
        for (now, changes) in [(0, false), (5, true), (10, false), (15, false)] {
            let changed = suspected.weigh(&raised(Code::PlantedLog), &mut findings, now, 5);
            assert_eq!(changed, changes, "at {now}");
        }
        assert_eq!((findings.all().len(), findings.left_out()), (MOST, 1));
        assert!(suspected.is_empty());
        let stored = serde_json::to_vec(&findings).unwrap();
        let mut again = serde_json::from_slice::<Findings>(&stored).unwrap().indexed();
        suspected.weigh(&raised(Code::PlantedLog), &mut again, 20, 0);
        assert_eq!((again.all().len(), again.left_out()), (MOST, 1), "a restart");
    }

    #[test]
    fn what_is_worse_takes_the_place_of_what_anybody_can_bring_about() {
        let (mut suspected, mut findings) = full();
        for code in [Code::Rollback, Code::RecordsChanged, Code::Stalled] {
            suspected.weigh(&raised(code), &mut findings, 1, 0);
        }
        let worse = |code| findings.all().iter().any(|found| found.code == code);
        assert!(worse(Code::Rollback) && worse(Code::RecordsChanged) && !worse(Code::Stalled));
        assert_eq!(findings.all().len(), MOST);
        // The state that found no room has ended.
        suspected.weigh(&Raised::default(), &mut findings, 2, 0);
        assert_eq!(findings.left_out(), 2);
    }

    #[test]
    fn a_state_that_found_no_room_is_kept_once_there_is_some() {
        let (mut suspected, mut findings) = (Suspected::default(), Findings::default());
        let stalled = |numbers: std::ops::Range<usize>| {
            let mut raised = Raised::default();
            for number in numbers {
                raised.raise(Code::Stalled, &format!("a/0/{number}"), "0", String::new());
            }
            raised
        };
        suspected.weigh(&stalled(0..MOST + 1), &mut findings, 0, 0);
        assert_eq!((findings.all().len(), findings.left_out()), (MOST, 1));
        for _ in 0..2 {
            suspected.weigh(&stalled(1..MOST + 1), &mut findings, 1, 0);
        }
        assert_eq!((findings.all().len(), findings.left_out()), (MOST, 0));
    }

    #[test]
    fn a_message_that_repeats_what_somebody_wrote_is_cut() {
        let (mut suspected, mut findings) = (Suspected::default(), Findings::default());
        let mut long = Raised::default();
        long.raise(Code::RecordsChanged, "a/0/X", "0", "\u{e9}".repeat(200_000));
        long.raise(Code::RecordsChanged, "a/0/Y", "0", "\u{e9}".repeat(MOST_CHARS));
        suspected.weigh(&long, &mut findings, 0, 0);
        for found in findings.all() {
            assert_eq!(found.message.chars().count(), MOST_CHARS);
        }
        assert!(findings.all()[0].message.ends_with('\u{2026}'));
        assert!(!findings.all()[1].message.ends_with('\u{2026}'));
    }

    fn raised(code: Code) -> Raised {
        let mut raised = Raised::default();
        raised.raise(code, "a/0/X", "0", "something".to_owned());
        raised
    }

    #[test]
    fn what_looks_wrong_once_is_found_when_it_still_does_after_the_delay() {
        let (mut suspected, mut findings) = (Suspected::default(), Findings::default());
        for (now, found) in [(10, 0), (14, 0), (15, 1), (16, 1)] {
            suspected.weigh(&raised(Code::Rollback), &mut findings, now, 5);
            assert_eq!(findings.all().len(), found, "at {now}");
        }
        assert_eq!(findings.all()[0].since, 10);
    }

    #[test]
    fn what_looks_right_again_is_forgotten() {
        let (mut suspected, mut findings) = (Suspected::default(), Findings::default());
        suspected.weigh(&raised(Code::Rollback), &mut findings, 10, 5);
        suspected.weigh(&Raised::default(), &mut findings, 12, 5);
        suspected.weigh(&raised(Code::Rollback), &mut findings, 20, 5);
        assert!(findings.all().is_empty());
    }

    #[test]
    fn evidence_stays_and_a_state_passes() {
        let (mut suspected, mut findings) = (Suspected::default(), Findings::default());
        for code in [Code::Fork, Code::Stalled] {
            suspected.weigh(&raised(code), &mut findings, 1, 0);
        }
        assert_eq!(findings.all().len(), 2);
        assert!(suspected.weigh(&Raised::default(), &mut findings, 2, 0));
        assert_eq!((findings.all().len(), findings.all()[0].code), (1, Code::Fork));
    }
}

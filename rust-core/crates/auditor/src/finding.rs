//! What an auditor has found.

use proofgate_evidence::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Findings that are kept; more of them are counted.
const MOST: usize = 1000;

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
    /// A tombstone that is none, is not the keeper's, or names another head than the one that was accepted.
    TombstoneRefused,
    /// A file among the ledger's statements of key succession is none that both keys signed, or they contradict each other.
    KeySuccessionRefused,
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
            | Self::Stalled
            | Self::Unreadable
            | Self::WorkerUnreachable => Verdict::Incomplete,
            Self::CheckpointMissing
            | Self::CheckpointRefused
            | Self::RecordsChanged
            | Self::RecordsDamaged
            | Self::PlantedLog
            | Self::TombstoneRefused
            | Self::KeySuccessionRefused => Verdict::Invalid,
            _ => Verdict::Diverged,
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

/// All that is known to be wrong.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Findings {
    kept: Vec<Finding>,
    /// Those that found no room.
    uncounted: u64,
}

impl Findings {
    pub(crate) fn all(&self) -> &[Finding] {
        &self.kept
    }

    pub(crate) fn left_out(&self) -> u64 {
        self.uncounted
    }

    fn has(&self, key: &Key) -> bool {
        self.kept
            .iter()
            .any(|kept| kept.code == key.0 && kept.origin == key.1)
    }

    fn add(&mut self, finding: Finding) {
        if self.kept.len() < MOST {
            self.kept.push(finding);
        } else {
            self.uncounted += 1;
        }
    }
}

/// What looks wrong in one poll.
#[derive(Debug, Default)]
pub(crate) struct Raised {
    seen: BTreeMap<Key, (String, String)>,
    /// Logs of which this poll cannot tell everything, so that what was suspected of them stays so.
    unsettled: Vec<String>,
    /// Suspicions that a second look has confirmed already.
    sure: Vec<Key>,
}

impl Raised {
    pub(crate) fn raise(&mut self, code: Code, origin: &str, shard: &str, message: String) {
        self.seen
            .entry((code, origin.to_owned()))
            .or_insert((shard.to_owned(), message));
    }

    /// As `raise`, of what needs no second look.
    pub(crate) fn raise_now(&mut self, code: Code, origin: &str, shard: &str, message: String) {
        self.raise(code, origin, shard, message);
        self.sure.push((code, origin.to_owned()));
    }

    pub(crate) fn unsettled(&mut self, origin: &str) {
        self.unsettled.push(origin.to_owned());
    }
}

/// What looked wrong once, and since when.
#[derive(Debug, Default)]
pub(crate) struct Suspected(BTreeMap<Key, u64>);

impl Suspected {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether anything is suspected of a log.
    pub(crate) fn of(&self, origin: &str) -> bool {
        self.0.keys().any(|(_, of)| of == origin)
    }

    /// Takes what a poll has raised: what still looks wrong `delay` microseconds after it first did is found, and what
    /// looks right again is forgotten. Whether the findings changed.
    pub(crate) fn weigh(&mut self, raised: &Raised, findings: &mut Findings, now: u64, delay: u64) -> bool {
        let mut changed = false;
        for (key, (shard, message)) in &raised.seen {
            if findings.has(key) {
                continue;
            }
            let since = *self.0.entry(key.clone()).or_insert(now);
            if raised.sure.contains(key) || now.saturating_sub(since) >= delay {
                self.0.remove(key);
                changed = true;
                findings.add(Finding {
                    code: key.0,
                    origin: key.1.clone(),
                    shard: shard.clone(),
                    since,
                    message: message.clone(),
                });
            }
        }
        let stays = |key: &Key| raised.seen.contains_key(key) || raised.unsettled.contains(&key.1);
        self.0.retain(|key, _| stays(key));
        let before = findings.kept.len();
        findings
            .kept
            .retain(|kept| !kept.code.passes() || stays(&(kept.code, kept.origin.clone())));
        changed | (findings.kept.len() != before)
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, Findings, Raised, Suspected};

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

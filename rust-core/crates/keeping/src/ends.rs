//! Where exchanges ended that their log left open: in a later one. While nobody can read that one, a hold may touch what it
//! holds of them.

use crate::hold::Hold;
use crate::reason::{RetentionReason, reason};
use crate::survey::LogSurvey;
use proofgate_evidence::Ulid;
use proofgate_evidence::rules::LogTracker;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

/// What is known of a log that somebody has signed for.
pub(crate) struct SignedLog<'r> {
    pub(crate) incarnation: Ulid,
    /// What it says; `None` where it was not read.
    pub(crate) tracker: Option<&'r LogTracker>,
    /// Nobody knows what it holds.
    pub(crate) is_doubtful: bool,
}

/// The ends of exchanges in other logs than the one that admitted them.
#[derive(Default)]
pub(crate) struct ExchangeEnds {
    /// The log of each, by the log and the number of the admission.
    ending_logs: BTreeMap<(Ulid, u64), Ulid>,
    /// Logs of which nobody knows what they hold, or held.
    doubtful: BTreeSet<Ulid>,
}

impl ExchangeEnds {
    /// Of the logs of a shard, the oldest first. One that others name, and that is not among them, is in doubt.
    pub(crate) fn from_logs<'r>(logs: impl Iterator<Item = SignedLog<'r>>) -> Self {
        let (mut ends, mut there, mut named) = (Self::default(), BTreeSet::new(), BTreeSet::new());
        for log in logs {
            there.insert(log.incarnation);
            named.extend(log.tracker.into_iter().flat_map(referenced_logs));
            if log.is_doubtful {
                ends.doubtful.insert(log.incarnation);
                continue;
            }
            let told = log.tracker.into_iter().flat_map(LogTracker::foreign_ends);
            ends.ending_logs
                .extend(told.map(|end| ((end.incarnation, end.admission), log.incarnation)));
        }
        ends.doubtful.extend(named.difference(&there));
        ends
    }

    /// Why exchanges that a log left open may be held: by their tenants and ids the holds can be about them, and before they
    /// ended comes a log in doubt.
    pub(crate) fn hold_reasons<'h>(
        &self,
        of: Ulid,
        read: &LogSurvey,
        is_concerned: impl Fn(u64) -> bool,
        holds: impl Iterator<Item = &'h Hold>,
    ) -> Vec<RetentionReason> {
        let Some(doubtful) = self.doubtful.range((Excluded(of), Unbounded)).next() else {
            return Vec::new();
        };
        let has_ended = |admission| {
            let ended = self.ending_logs.get(&(of, admission));
            ended.is_some_and(|log| log < doubtful)
        };
        let open = read.open.iter();
        let open = open.filter(|(admission, _)| is_concerned(**admission) && !has_ended(**admission));
        let open: Vec<(&str, Option<&str>)> = open
            .map(|(admission, tenant)| (tenant.as_str(), read.tracker.open_request_id(*admission)))
            .collect();
        let is_about = |hold: &&Hold| {
            open.iter()
                .any(|(tenant, id)| hold.scope.matches_ignoring_time(Some(tenant), *id))
        };
        let why = holds.filter(is_about).map(|hold| {
            let text = format!(
                "hold {} may cover an exchange of this log that continued in {doubtful}; it is not known what that log contains: run fsck",
                hold.id
            );
            reason("held_unknown", text)
        });
        why.collect()
    }
}

/// The other logs that one names: the one before it, those whose end it tells, and the one that goes on.
pub(crate) fn referenced_logs(rules: &LogTracker) -> BTreeSet<Ulid> {
    let before = rules.opened().and_then(|opened| opened.predecessor);
    let before = before.map(|before| before.incarnation);
    let ended = rules.takeovers().iter().map(|(_, ended)| ended.incarnation);
    before.into_iter().chain(ended).chain(rules.successor()).collect()
}

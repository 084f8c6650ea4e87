//! The later logs with the ends of exchanges that are open in their own log. While such a log
//! cannot be read, a hold may apply to its records of these exchanges.

use crate::hold::Hold;
use crate::reason::{RetentionReason, reason};
use crate::survey::LogSurvey;
use proofgate_evidence::Ulid;
use proofgate_evidence::rules::LogTracker;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

/// A log and what is known about it.
pub(crate) struct SignedLog<'r> {
    pub(crate) incarnation: Ulid,
    /// Its state; `None` when the log was not read.
    pub(crate) tracker: Option<&'r LogTracker>,
    /// Whether its content is unknown.
    pub(crate) has_unknown_content: bool,
}

/// The ends of exchanges that are in another log than the admission.
#[derive(Default)]
pub(crate) struct ExchangeEnds {
    /// The log that holds each end, by the log and the number of the admission.
    ending_logs: BTreeMap<(Ulid, u64), Ulid>,
    /// Logs whose current or former content is unknown.
    doubtful: BTreeSet<Ulid>,
}

impl ExchangeEnds {
    /// Collects the ends from the logs of a shard, oldest first. A log that others name but that is missing counts as
    /// unknown.
    pub(crate) fn from_logs<'r>(logs: impl Iterator<Item = SignedLog<'r>>) -> Self {
        let (mut ends, mut there, mut named) = (Self::default(), BTreeSet::new(), BTreeSet::new());
        for log in logs {
            there.insert(log.incarnation);
            named.extend(log.tracker.into_iter().flat_map(referenced_logs));
            if log.has_unknown_content {
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

    /// Returns the reasons why exchanges that a log left open may be held: a hold may apply to them by tenant and id, and
    /// a log with unknown content comes before their end.
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
        let open = read.open_exchange_tenants.iter();
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
                "hold {} may cover an exchange of this log that continued in {doubtful}, but the contents of {doubtful} are unknown: run fsck",
                hold.id
            );
            reason("held_unknown", text)
        });
        why.collect()
    }
}

/// Returns the other logs that a log names: its predecessor, those whose end it states, and its successor.
pub(crate) fn referenced_logs(rules: &LogTracker) -> BTreeSet<Ulid> {
    let before = rules.opening().and_then(|opened| opened.predecessor);
    let before = before.map(|before| before.incarnation);
    let ended = rules.takeovers().iter().map(|(_, ended)| ended.incarnation);
    before.into_iter().chain(ended).chain(rules.successor()).collect()
}

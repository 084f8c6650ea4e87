//! Checks that each admission has exactly one end, in its own log or in a later log.

use super::scanned_log::ScannedLog;
use crate::report::Verdict;
use crate::rules::check_agreement;
use std::collections::{BTreeMap, BTreeSet};
use ulid::Ulid;

/// Matches the ends in each log of a shard with the admissions in the other logs. `logs` are
/// ordered by age; `next` holds for each log the index of the log that continues it. `zombies`
/// holds the logs that were written to after a successor had recorded their end, with the number of
/// records that the successor recorded. `forked` holds the logs with several successors.
pub(super) fn check(
    logs: &mut [ScannedLog],
    next: &[Option<usize>],
    zombies: &BTreeMap<Ulid, u64>,
    forked: &BTreeSet<Ulid>,
) {
    let mut open: Vec<BTreeSet<u64>> = logs
        .iter()
        .map(|log| log.tracker.open_exchanges().collect())
        .collect();
    let index: BTreeMap<Ulid, usize> = logs
        .iter()
        .enumerate()
        .map(|(at, log)| (log.incarnation, at))
        .collect();
    // An exchange that an interrupted start ended may be ended again by the next start.
    let (cut, begun): (Vec<usize>, Vec<usize>) = (0..logs.len()).partition(|at| logs[*at].never_served());
    for (by, twice_allowed) in begun
        .into_iter()
        .map(|at| (at, false))
        .chain(cut.into_iter().map(|at| (at, true)))
    {
        for end in logs[by].tracker.foreign_ends().to_vec() {
            let Some(of) = index.get(&end.incarnation).copied() else {
                continue;
            };
            let admitted = end.admission < logs[of].report.records && logs[of].complete;
            if let Err(message) = check_agreement(
                end.seq,
                end.admission,
                logs[of].tracker.is_body_pending(end.admission),
                end.received,
            ) {
                logs[by].add_finding(Verdict::Invalid, message);
            }
            if open[of].remove(&end.admission)
                || twice_allowed
                || !admitted
                || !logs[of].tracker.is_complete()
            {
                continue;
            }
            // A worker that was assumed to have ended may have continued for some time, and two
            // successors may close the same exchanges. Both cases have their own finding.
            let verdict = match zombies.contains_key(&end.incarnation) || forked.contains(&end.incarnation) {
                true => Verdict::Incomplete,
                false => Verdict::Invalid,
            };
            let message = format!(
                "record {} ends the exchange that record {} of {} admitted, but that exchange has already ended or was never admitted",
                end.seq, end.admission, end.incarnation
            );
            logs[by].add_finding(verdict, message);
        }
    }
    for at in 0..logs.len() {
        // No log closes an exchange that was admitted after a successor had recorded the end.
        if let Some(end) = zombies.get(&logs[at].incarnation) {
            open[at].retain(|admission| admission < end);
        }
        let (Some(first), count) = (open[at].first().copied(), open[at].len()) else {
            continue;
        };
        if !logs[at].complete || !logs[at].tracker.is_complete() {
            continue;
        }
        if let Some((verdict, why)) = unfinished_verdict(logs, next, at) {
            let message = format!("{count} exchanges (first: record {first}) have not ended: {why}");
            logs[at].add_finding(verdict, message);
        }
    }
}

/// Returns the verdict and the reason if the exchanges of a log must have ended; `None` if they may still be open.
fn unfinished_verdict(
    logs: &[ScannedLog],
    next: &[Option<usize>],
    start: usize,
) -> Option<(Verdict, &'static str)> {
    let mut at = start;
    while let Some(then) = next[at] {
        let opened = logs[then].tracker.opening();
        let restarted = opened
            .and_then(|opened| opened.predecessor)
            .is_some_and(|predecessor| !predecessor.running);
        if restarted {
            return match logs[then].tracker.first_served() {
                Some(_) => Some((Verdict::Invalid, "a worker that started later did not close them")),
                None => Some((
                    Verdict::Incomplete,
                    "a worker that started later ended before it could close them",
                )),
            };
        }
        at = then;
    }
    let ended = logs[at].tracker.is_sealed() && logs[at].tracker.successor().is_none();
    ended.then_some((
        Verdict::Incomplete,
        "the log is sealed, but no later log has closed them",
    ))
}

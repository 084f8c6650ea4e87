//! Compares the logs of one shard with each other: every log except the first names its
//! predecessor.

use super::held_checkpoints::{self, HeldCheckpoints};
use super::scan::scan;
use super::scanned_log::{ScannedLog, StatedTreeHead, verify_note};
use super::scope::{FsckKeys, Scope};
use super::unreadable_log::{self, LogScan};
use super::{analyses, exchanges, keys as key_line, removal_check};
use crate::checkpoint_file::{self, successor_note_name};
use crate::key_destructions::DestroyedKeys;
use crate::layout::{Shard, parse_incarnation};
use crate::report::{CheckpointState, IncarnationReport, Verdict};
use crate::rules::Predecessor;
use crate::{EvidenceError, ReadStorage};
use proofgate_ledger::VerifyingKey;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use ulid::Ulid;

/// The statement of a later log about an earlier log.
struct Claim {
    /// Index of the later log.
    source: usize,
    /// The predecessor in the `open` of the later log.
    predecessor: Predecessor,
    /// The stated end of the predecessor, from this `open`, or from a `takeover` in this or a later
    /// log.
    end: Option<StatedEnd>,
}

/// The end of a log as another log states it.
#[derive(Clone, Copy)]
struct StatedEnd {
    /// Index of the log that states the end.
    source: usize,
    /// Number of the record that states the end.
    seq: u64,
    predecessor: Predecessor,
}

pub(super) fn check(
    storage: &dyn ReadStorage,
    shard: &Shard,
    (keys, destroyed, of): (FsckKeys<'_>, &DestroyedKeys, Scope),
    held: &mut HeldCheckpoints<'_>,
    reports: &mut Vec<IncarnationReport>,
) -> Result<(), EvidenceError> {
    let mirror = of != Scope::Ledger;
    let mut past: Vec<IncarnationReport> = Vec::new();
    // Scan the newest log first, so that a log's statements about its predecessor are known before
    // the predecessor is read.
    let mut logs: Vec<ScannedLog> = Vec::with_capacity(shard.incarnations.len());
    let mut heads: BTreeMap<Ulid, Vec<StatedTreeHead>> = BTreeMap::new();
    for incarnation in shard.incarnations.iter().rev() {
        let dir = shard.dir.join(incarnation.to_string());
        let mut stated = heads.remove(incarnation).unwrap_or_default();
        let kept = held.match_incarnation(*incarnation);
        stated.extend(kept.iter().map(|one| held_checkpoints::required_head(one)));
        let by = (keys, destroyed, mirror);
        let looked = match of {
            Scope::SingleLog => LogScan::Readable(Box::new(scan(storage, &dir, *incarnation, by, stated)?)),
            _ => unreadable_log::scan_readable(storage, &dir, *incarnation, by, &stated)?,
        };
        let mut log = match looked {
            LogScan::Readable(log) => *log,
            LogScan::Unreadable(report) => {
                past.push(*report);
                continue;
            }
        };
        for one in kept {
            let origin = &one.checkpoint.origin;
            if log.report.origin.as_ref().is_some_and(|own| own != origin) {
                let message = format!(
                    "it is a checkpoint of {origin}, but the log of that incarnation has another origin"
                );
                log.add_finding_in(&one.file, Verdict::Diverged, message);
            }
        }
        check_shard(&mut log, shard);
        collect_heads(storage, &mut log, keys.ledger, &mut heads)?;
        logs.push(log);
    }
    logs.reverse();
    let claims = collect_claims(&logs);
    let (next, forked) = find_successors(&mut logs, &claims, &past);
    if !shard.single {
        removal_check::require_end(&mut logs, &next);
    }
    let zombies = compare_ends(&mut logs, &claims);
    find_missing_logs(storage, shard, mirror, &mut logs)?;
    exchanges::check(&mut logs, &next, &zombies, &forked);
    analyses::check(storage, &mut logs)?;
    check_coverage(&mut logs, &claims);
    key_line::check_key_order(&mut logs, keys.ledger);
    let from = reports.len();
    reports.extend(logs.into_iter().map(|log| log.report));
    reports.extend(past);
    // The names of logs sort by age.
    reports[from..].sort_by(|one, other| one.incarnation.cmp(&other.incarnation));
    Ok(())
}

/// Reports a log in the directory of a shard to which it does not belong, because a worker of that
/// shard would treat the log as its predecessor.
fn check_shard(log: &mut ScannedLog, shard: &Shard) {
    let Some((opened, name)) = log.tracker.opening().zip(shard.name.as_ref()) else {
        return;
    };
    let own = opened.shard.to_string();
    if own != *name {
        let message = format!("this is a log of shard {own}, but it is in the directory {name}");
        log.add_finding(Verdict::Diverged, message);
    }
}

/// Collects the tree heads that a log, and the notes in its directory, state for earlier logs.
fn collect_heads(
    storage: &dyn ReadStorage,
    log: &mut ScannedLog,
    key: Option<&VerifyingKey>,
    heads: &mut BTreeMap<Ulid, Vec<StatedTreeHead>>,
) -> Result<(), EvidenceError> {
    let Some(opened) = log.tracker.opening().cloned() else {
        return Ok(());
    };
    let named = opened.predecessor.into_iter();
    let stated: Vec<Predecessor> = named
        .chain(log.tracker.takeovers().iter().map(|(_, ended)| *ended))
        .collect();
    let below = opened.origin.strip_suffix(&log.incarnation.to_string());
    let mut covered = BTreeSet::new();
    for said in stated {
        heads.entry(said.incarnation).or_default().push(StatedTreeHead {
            size: said.size,
            root: said.root,
            file: log.dir.clone(),
            source: log.incarnation.to_string(),
            is_own: false,
        });
        if !covered.insert(said.incarnation) {
            continue;
        }
        let path = log.dir.join(successor_note_name(said.incarnation));
        let note = match checkpoint_file::read_successor_note(storage, &log.dir, said.incarnation) {
            Ok(None) => continue,
            Ok(Some(note)) => verify_note(&note, key).map(|(signed, _)| signed),
            Err(EvidenceError::Corruption { reason, .. }) => Err(reason.into()),
            Err(error) => {
                log.report
                    .findings
                    .push(unreadable_log::unreadable_finding(error, "")?);
                continue;
            }
        };
        let signed = match note {
            Ok(signed) => signed,
            Err(refusal) => {
                log.add_refusal(&path, refusal);
                continue;
            }
        };
        if below.is_none_or(|below| signed.origin != format!("{below}{}", said.incarnation)) {
            let message = format!(
                "it is a checkpoint of {}, not of {}",
                signed.origin, said.incarnation
            );
            log.add_finding_in(&path, Verdict::Invalid, message);
            continue;
        }
        log.note_coverage.insert(said.incarnation, signed.size);
        heads.entry(said.incarnation).or_default().push(StatedTreeHead {
            size: signed.size,
            root: signed.root,
            file: path,
            source: "it".to_owned(),
            is_own: false,
        });
    }
    Ok(())
}

/// Returns the claims of later logs about each log.
fn collect_claims(logs: &[ScannedLog]) -> Vec<Vec<Claim>> {
    let index: BTreeMap<Ulid, usize> = logs
        .iter()
        .enumerate()
        .map(|(at, log)| (log.incarnation, at))
        .collect();
    let mut claims: Vec<Vec<Claim>> = logs.iter().map(|_| Vec::new()).collect();
    for (by, log) in logs.iter().enumerate() {
        let Some(named) = log.tracker.opening().and_then(|opened| opened.predecessor) else {
            continue;
        };
        if let Some(of) = index.get(&named.incarnation) {
            let said = named;
            let ended = (!named.running).then_some(StatedEnd {
                source: by,
                seq: 0,
                predecessor: said,
            });
            claims[*of].push(Claim {
                source: by,
                predecessor: named,
                end: ended,
            });
        }
    }
    // The next start repeats the claims of an interrupted start, and only the repeated claims are
    // signed.
    let (cut, begun): (Vec<_>, Vec<_>) = logs.iter().enumerate().partition(|(_, log)| log.never_served());
    for (by, log) in begun.into_iter().chain(cut) {
        for (seq, said) in log.tracker.takeovers() {
            let of = index.get(&said.incarnation).and_then(|of| claims.get_mut(*of));
            for claim in of.into_iter().flatten().filter(|claim| claim.end.is_none()) {
                let (seq, said) = (*seq, *said);
                claim.end = Some(StatedEnd {
                    source: by,
                    seq,
                    predecessor: said,
                });
            }
        }
    }
    claims
}

/// Finds the log that continues each log. Two such logs are a fork. An interrupted start does not
/// count if there is another successor.
fn find_successors(
    logs: &mut [ScannedLog],
    claims: &[Vec<Claim>],
    unreadable: &[IncarnationReport],
) -> (Vec<Option<usize>>, BTreeSet<Ulid>) {
    // A successor does not continue an incarnation without records.
    let newest = logs.iter().rposition(|log| log.report.records > 0);
    let mut next = Vec::with_capacity(logs.len());
    let mut forked = BTreeSet::new();
    for (at, claims) in claims.iter().enumerate() {
        let served: Vec<usize> = claims
            .iter()
            .map(|claim| claim.source)
            .filter(|by| !logs[*by].never_served())
            .collect();
        if served.len() > 1 {
            forked.insert(logs[at].incarnation);
            let names: Vec<String> = served
                .iter()
                .map(|by| logs[*by].incarnation.to_string())
                .collect();
            let message = format!(
                "{} name this log as their predecessor: the chain forks",
                names.join(" and ")
            );
            logs[at].add_finding(Verdict::Diverged, message);
        }
        let goes_on = served.last().copied().or(claims.last().map(|claim| claim.source));
        if goes_on.is_none()
            && logs[at].report.records > 0
            && !logs[at].never_served()
            && newest.is_some_and(|newest| at < newest)
            // A log that cannot be read may name this log as its predecessor.
            && unreadable.iter().all(|report| report.incarnation < logs[at].report.incarnation)
        {
            let message = "no later log names this log as its predecessor".to_owned();
            logs[at].add_finding(Verdict::Incomplete, message);
        }
        next.push(goes_on);
    }
    (next, forked)
}

/// Compares the end of each log with the end that its successors state. Returns the logs that were
/// written to after the stated end.
fn compare_ends(logs: &mut [ScannedLog], claims: &[Vec<Claim>]) -> BTreeMap<Ulid, u64> {
    let mut zombies = BTreeMap::new();
    for (at, claims) in claims.iter().enumerate() {
        let size = logs[at].report.records;
        for StatedEnd {
            source: by,
            predecessor: ended,
            ..
        } in claims.iter().filter_map(|claim| claim.end)
        {
            if size > ended.size {
                zombies.insert(logs[at].incarnation, ended.size);
                let message = format!(
                    "records {} to {} were written after the successor recorded this log's end",
                    ended.size,
                    size - 1
                );
                logs[at].add_finding(Verdict::Incomplete, message);
            } else if size == ended.size
                && ended.sealed != logs[at].report.sealed
                && claims.iter().any(|claim| claim.source == by)
            {
                let message = format!(
                    "its successor recorded this log with sealed={}, which does not match the log",
                    ended.sealed
                );
                logs[at].add_finding(Verdict::Diverged, message);
            }
        }
    }
    zombies
}

/// Finds missing logs that other logs name.
fn find_missing_logs(
    storage: &dyn ReadStorage,
    shard: &Shard,
    is_mirror: bool,
    logs: &mut [ScannedLog],
) -> Result<(), EvidenceError> {
    if shard.single {
        // A check of a single incarnation cannot determine this.
        return Ok(());
    }
    let there: BTreeSet<Ulid> = shard.incarnations.iter().copied().collect();
    let named: BTreeMap<Ulid, Option<Ulid>> = logs
        .iter()
        .filter_map(|log| Some((log.incarnation, log.tracker.opening()?)))
        .map(|(own, opened)| (own, opened.predecessor.map(|before| before.incarnation)))
        .collect();
    let told: BTreeSet<Ulid> = logs
        .iter()
        .flat_map(|log| log.tracker.takeovers())
        .map(|(_, ended)| ended.incarnation)
        .collect();
    let newest = logs
        .iter()
        .filter(|log| log.report.records > 0 && !log.never_served())
        .map(|log| log.incarnation)
        .max();
    for log in logs.iter_mut() {
        if let Some(successor) = log.tracker.successor()
            && named
                .get(&successor)
                .is_some_and(|before| *before != Some(log.incarnation))
        {
            let message = format!(
                "its seal names {successor} as its successor, but that log names another predecessor"
            );
            log.add_finding(Verdict::Diverged, message);
        }
        let ran = log.tracker.opening().and_then(|opened| opened.predecessor);
        let untold = ran.filter(|before| before.running && !told.contains(&before.incarnation));
        if let Some(before) = untold
            && newest.is_some_and(|newest| log.incarnation < newest)
        {
            let message = format!(
                "its predecessor {} was still running when this log was opened, and no record states the end of that predecessor",
                before.incarnation
            );
            log.add_finding(Verdict::Incomplete, message);
        }
        let named = log.tracker.opening().and_then(|opened| opened.predecessor);
        if let Some(named) = named.filter(|named| !there.contains(&named.incarnation)) {
            let message = format!("its predecessor {} is missing", named.incarnation);
            log.add_finding(Verdict::Incomplete, message);
        }
        let Some(successor) = log.tracker.successor().filter(|named| !there.contains(named)) else {
            continue;
        };
        if is_mirror && Some(log.incarnation) == newest {
            // The successor is still running. It is added to the mirror when it has ended.
            continue;
        }
        // The log may have been created since the shard was listed.
        let dir = &shard.dir;
        let now = match storage.list(dir).map_err(EvidenceError::io("list", dir)) {
            Ok(now) => now,
            Err(error) => {
                log.report
                    .findings
                    .push(unreadable_log::unreadable_finding(error, "")?);
                continue;
            }
        };
        if !now.iter().any(|name| parse_incarnation(name) == Some(successor)) {
            let message = format!("its successor {successor} is missing");
            log.add_finding(Verdict::Incomplete, message);
        }
    }
    Ok(())
}

/// Reports records that no checkpoint covers: neither the log's own checkpoint nor, through the
/// statements in its `open`, the checkpoint of a later log. Also reports records that are covered
/// but cannot be proved, because the note that covers them is missing.
fn check_coverage(logs: &mut [ScannedLog], claims: &[Vec<Claim>]) {
    for (at, claims) in claims.iter().enumerate() {
        if logs[at].never_served() || logs[at].report.records == 0 {
            continue;
        }
        let own = match logs[at].report.checkpoint {
            CheckpointState::Bad => 0,
            _ => logs[at].report.checkpoint_size,
        };
        let mut covered = own;
        for claim in claims {
            let signed = |by: usize, seq: u64| {
                let report = &logs[by].report;
                report.checkpoint == CheckpointState::Verified && report.checkpoint_size > seq
            };
            if signed(claim.source, 0) {
                covered = covered.max(claim.predecessor.size);
            }
            if let Some(ended) = claim.end.filter(|ended| signed(ended.source, ended.seq)) {
                covered = covered.max(ended.predecessor.size);
            }
        }
        let records = logs[at].report.records;
        if covered < records {
            let message = format!(
                "records {covered} to {} are not covered by a checkpoint",
                records - 1
            );
            logs[at].add_finding(Verdict::Incomplete, message);
        }
        let kept = |ended: &StatedEnd| {
            logs[ended.source]
                .note_coverage
                .get(&logs[at].incarnation)
                .copied()
        };
        let unproved = claims
            .iter()
            .filter_map(|claim| claim.end)
            .filter(|ended| ended.predecessor.size > own)
            .find(|ended| kept(ended).is_none_or(|kept| kept < ended.predecessor.size));
        if let Some(StatedEnd {
            source: by,
            predecessor: said,
            ..
        }) = unproved
        {
            let path = logs[by].dir.join(successor_note_name(logs[at].incarnation));
            let message = format!(
                "no checkpoint note covers records {own} to {} of {}: they cannot be proved",
                said.size - 1,
                logs[at].incarnation
            );
            logs[by].add_finding_in(Path::new(&path), Verdict::Incomplete, message);
        }
    }
}

//! Checks that each analysis refers to an earlier exchange of the same tenant.

use super::scanned_log::{AnalysisRef, ScannedLog};
use super::unreadable_log;
use crate::lookup::read_records;
use crate::report::Verdict;
use crate::{EvidenceError, ReadStorage};
use std::collections::BTreeMap;
use ulid::Ulid;

/// Checks the admissions to which the analyses of a shard's logs refer. This check has no finding
/// for a log that is missing, removed or incomplete, because other checks report it.
pub(super) fn check(storage: &dyn ReadStorage, logs: &mut [ScannedLog]) -> Result<(), EvidenceError> {
    let index: BTreeMap<Ulid, usize> = logs
        .iter()
        .enumerate()
        .map(|(at, log)| (log.incarnation, at))
        .collect();
    for by in 0..logs.len() {
        let mut referring: BTreeMap<usize, Vec<AnalysisRef>> = BTreeMap::new();
        for analysed in std::mem::take(&mut logs[by].analyses) {
            let named = analysed.incarnation.unwrap_or(logs[by].incarnation);
            if let Some(of) = index.get(&named) {
                referring.entry(*of).or_default().push(analysed);
            }
        }
        for (of, mut analyses) in referring {
            if !logs[of].complete || logs[of].report.removed.is_some() {
                continue;
            }
            analyses.sort_by_key(|analysed| analysed.admission);
            let records = logs[of].report.records;
            let (there, beyond): (Vec<_>, Vec<_>) =
                analyses.iter().partition(|analysed| analysed.admission < records);
            let mut seqs: Vec<u64> = there.iter().map(|analysed| analysed.admission).collect();
            seqs.dedup();
            let stored = match read_records(storage, &logs[of].dir, &seqs) {
                Ok(stored) => stored,
                Err(error) => {
                    let found = unreadable_log::unreadable_finding(
                        error,
                        ": the analysed exchanges were not checked",
                    )?;
                    logs[of].report.findings.push(found);
                    continue;
                }
            };
            let stored: BTreeMap<u64, Vec<u8>> = seqs.into_iter().zip(stored).collect();
            let of_nothing = there.into_iter().filter(|analysed| {
                let payload = stored.get(&analysed.admission);
                !payload.is_some_and(|payload| analysed.is_admitted_by(payload))
            });
            let messages: Vec<String> = of_nothing
                .chain(beyond)
                .map(|analysed| {
                    format!(
                        "record {} is an analysis of {}, but record {} of {} did not admit that exchange",
                        analysed.seq, analysed.exchange, analysed.admission, logs[of].incarnation
                    )
                })
                .collect();
            for message in messages {
                logs[by].add_finding(Verdict::Invalid, message);
            }
        }
    }
    Ok(())
}

//! The lineage of the ledger's keys, from the statements on the volume.

use crate::finding::{FindingCode, RaisedFindings};
use crate::reachability::is_unreachable;
use proofgate_evidence::{ReadStorage, key_successions};
use proofgate_ledger::VerifyingKey;
use std::path::Path;

/// Adds the lineage from the statements of the ledger at a path to `key`. Accepted keys remain in
/// the lineage, even if their statement is removed.
pub(crate) fn follow_successions(
    volume: &dyn ReadStorage,
    ledger: &Path,
    key: &mut VerifyingKey,
    raised: &mut RaisedFindings,
) {
    let name = key.name().to_owned();
    let kept = match key_successions::read(volume, ledger) {
        Ok(kept) => kept,
        Err(error) if is_unreachable(&error) => return,
        Err(error) => return raised.raise(FindingCode::Unreadable, &name, "", error.to_string()),
    };
    let mut refuse = |why: String| raised.raise(FindingCode::KeySuccessionRefused, &name, "", why);
    for (file, why) in &kept.refused {
        refuse(format!("{}: {why}", file.display()));
    }
    match key.with_successions(&kept.statements()) {
        Ok(line) => *key = line,
        Err(error) => refuse(error.to_string()),
    }
}

//! The line of the ledger's keys, as the statements on the volume lead along it.

use crate::finding::{FindingCode, RaisedFindings};
use crate::reach::is_unreachable;
use proofgate_evidence::{ReadStorage, key_successions};
use proofgate_ledger::VerifyingKey;
use std::path::Path;

/// Adds to `key` what the statements of the ledger at a path say of its line. What was accepted stays, whatever becomes of
/// its statement.
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

//! The line of the ledger's keys, as the statements on the volume lead along it.

use crate::finding::{Code, Raised};
use crate::reach::is_away;
use proofgate_evidence::{ReadStorage, key_successions};
use proofgate_ledger::VerifyingKey;
use std::path::Path;

/// Adds to `key` what the statements of the ledger at a path say of its line. What was accepted stays, whatever becomes of
/// its statement.
pub(crate) fn follow(volume: &dyn ReadStorage, ledger: &Path, key: &mut VerifyingKey, raised: &mut Raised) {
    let name = key.name().to_owned();
    let kept = match key_successions::read(volume, ledger) {
        Ok(kept) => kept,
        Err(error) if is_away(&error) => return,
        Err(error) => return raised.raise(Code::Unreadable, &name, "", error.to_string()),
    };
    let mut refuse = |why: String| raised.raise(Code::KeySuccessionRefused, &name, "", why);
    for (file, why) in &kept.refused {
        refuse(format!("{}: {why}", file.display()));
    }
    match key.with_successions(&kept.statements()) {
        Ok(line) => *key = line,
        Err(error) => refuse(error.to_string()),
    }
}

//! The holds that the retention job placed and released: files in the directory `hold-statements` beside the shards.

use crate::note_files;
pub use crate::note_files::file_name;
use crate::{EvidenceError, ReadStorage};
use proofgate_ledger::{HoldStatement, VerifyingKey};
use std::path::{Path, PathBuf};

/// Name of the directory of hold statements.
pub const HOLD_STATEMENTS_DIR: &str = "hold-statements";
/// Most files in the directory.
pub const MAX_FILES: usize = 1 << 16;

/// Reads the hold statements of the ledger in this directory, each with its file. A statement is
/// refused if `keeping` did not sign it, or if it names another ledger than `name`. For a refused
/// statement, returns the reason.
///
/// # Errors
/// [`EvidenceError::Io`]; [`EvidenceError::Corruption`] when there are more than 65536 files.
#[expect(
    clippy::type_complexity,
    reason = "the result is either a statement or the reason why there is none"
)]
pub fn read(
    storage: &dyn ReadStorage,
    ledger: &Path,
    name: &str,
    keeping: &VerifyingKey,
) -> Result<Vec<(PathBuf, Result<HoldStatement, String>)>, EvidenceError> {
    let notes = note_files::read(storage, &ledger.join(HOLD_STATEMENTS_DIR), MAX_FILES)?;
    let read = |note: String| {
        let statement = HoldStatement::verify(&note, keeping).map_err(|error| error.to_string())?;
        match statement.ledger == name {
            true => Ok(statement),
            false => Err(format!("it is about another ledger, {}", statement.ledger)),
        }
    };
    Ok(notes
        .into_iter()
        .map(|(path, note)| (path, note.and_then(read)))
        .collect())
}

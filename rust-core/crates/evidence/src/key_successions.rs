//! A ledger's statements of key succession: files in the directory `key-successions` beside the shards.

use crate::layout::shards;
use crate::note_files;
pub use crate::note_files::file_name;
use crate::{EvidenceError, ReadStorage};
use proofgate_ledger::{KeySuccession, VerifyingKey};
use std::path::{Path, PathBuf};

/// Name of the directory of key successions.
pub const KEY_SUCCESSIONS_DIR: &str = "key-successions";
/// Most files in the directory.
const MAX_FILES: usize = 1024;

/// The stored statements of key succession.
#[derive(Debug, Default)]
pub struct StoredSuccessions {
    /// Statements that both of their keys signed, each with its note. These keys may belong to
    /// another ledger.
    pub signed: Vec<(KeySuccession, String)>,
    /// Files that hold no valid statement, each with the reason.
    pub refused: Vec<(PathBuf, String)>,
}

impl StoredSuccessions {
    /// Returns the statements without their notes.
    #[must_use]
    pub fn statements(&self) -> Vec<KeySuccession> {
        self.signed
            .iter()
            .map(|(statement, _)| statement.clone())
            .collect()
    }
}

/// Reads the statements of the ledger in this directory; empty when there are none.
///
/// # Errors
/// [`EvidenceError::Io`]; [`EvidenceError::Corruption`] when there are more than 1024 files.
pub fn read(storage: &dyn ReadStorage, ledger: &Path) -> Result<StoredSuccessions, EvidenceError> {
    let mut kept = StoredSuccessions::default();
    for (path, note) in note_files::read(storage, &ledger.join(KEY_SUCCESSIONS_DIR), MAX_FILES)? {
        let read = note.and_then(|note| match KeySuccession::verify(&note) {
            Ok(statement) => Ok((statement, note)),
            Err(error) => Err(error.to_string()),
        });
        match read {
            Ok(signed) => kept.signed.push(signed),
            Err(why) => kept.refused.push((path, why)),
        }
    }
    Ok(kept)
}

/// Returns the directory of the ledger to which a path belongs. The path may be the directory of a
/// ledger, a shard or an incarnation.
///
/// # Errors
/// Same as [`shards`].
pub fn ledger_directory(storage: &dyn ReadStorage, path: &Path) -> Result<PathBuf, EvidenceError> {
    let found = shards(storage, path)?;
    let above = found.first().and_then(|shard| shard.dir.parent());
    Ok(above.unwrap_or(path).to_owned())
}

/// Adds the lineage from the statements of the ledger at a path to a key. Invalid statements are
/// skipped; `fsck` reports them.
///
/// # Errors
/// Same as [`read`] and [`VerifyingKey::with_successions`].
pub fn follow_successions(
    storage: &dyn ReadStorage,
    path: &Path,
    key: &VerifyingKey,
) -> Result<VerifyingKey, EvidenceError> {
    let kept = match ledger_directory(storage, path) {
        Ok(ledger) => read(storage, &ledger)?,
        Err(EvidenceError::NotALog(_)) => StoredSuccessions::default(),
        Err(error) => return Err(error),
    };
    Ok(key.with_successions(&kept.statements())?)
}

//! Which shred keys a keeper destroyed: files in the directory `key-destructions` beside the shards.

use crate::note_files;
pub use crate::note_files::file_name;
use crate::{EvidenceError, ReadStorage};
use proofgate_ledger::{KeyDestruction, ShredKeyId, VerifyingKey};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Name of the directory.
pub const KEY_DESTRUCTIONS: &str = "key-destructions";
/// Most files that are looked at.
const MAX_FILES: usize = 1 << 16;

/// What stands there.
#[derive(Debug, Default)]
pub struct Destroyed {
    by_tenant: BTreeMap<String, BTreeSet<ShredKeyId>>,
    /// Files that hold no such statement, and why.
    pub refused: Vec<(PathBuf, String)>,
}

impl Destroyed {
    /// Whether it was signed that this key of a tenant was destroyed.
    #[must_use]
    pub fn has(&self, tenant: &str, key: ShredKeyId) -> bool {
        self.by_tenant.get(tenant).is_some_and(|keys| keys.contains(&key))
    }

    /// The keys, each with its tenant.
    pub fn keys(&self) -> impl Iterator<Item = (&str, ShredKeyId)> {
        self.by_tenant
            .iter()
            .flat_map(|(tenant, keys)| keys.iter().map(|key| (tenant.as_str(), *key)))
    }
}

/// Reads the statements about a ledger at this directory that `keeping` signed; `name` is the ledger's.
///
/// # Errors
/// [`EvidenceError::Io`]; [`EvidenceError::Corruption`] when there are more than 65536 files.
pub fn read(
    storage: &dyn ReadStorage,
    ledger: &Path,
    name: &str,
    keeping: &VerifyingKey,
) -> Result<Destroyed, EvidenceError> {
    let mut destroyed = Destroyed::default();
    for (path, note) in note_files::read(storage, &ledger.join(KEY_DESTRUCTIONS), MAX_FILES)? {
        let read = note.and_then(|note| {
            let read = KeyDestruction::verify(&note, keeping).map_err(|error| error.to_string())?;
            match read.ledger == name {
                true => Ok(read),
                false => Err(format!("it is about another ledger, {}", read.ledger)),
            }
        });
        match read {
            Ok(read) => {
                destroyed
                    .by_tenant
                    .entry(read.tenant)
                    .or_default()
                    .insert(read.key);
            }
            Err(why) => destroyed.refused.push((path, why)),
        }
    }
    Ok(destroyed)
}

//! The shred keys that the retention job destroyed: files in the directory `key-destructions` beside the shards.

use crate::note_files;
pub use crate::note_files::file_name;
use crate::{EvidenceError, ReadStorage};
use proofgate_ledger::{KeyDestruction, ShredKeyId, VerifyingKey};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of the directory of key destructions.
pub const KEY_DESTRUCTIONS_DIR: &str = "key-destructions";
/// Most files in the directory.
pub const MAX_FILES: usize = 1 << 16;

/// Time after a statement during which a worker may still use the destroyed key from its memory, in
/// microseconds. An admission under the key after this time shows that the key was not destroyed at
/// the stated time, or that the statement is backdated.
pub const KEY_USE_GRACE: u64 = 600_000_000;

/// The signed statements about the destruction of one key.
#[derive(Debug)]
struct StatedDestruction {
    /// The earliest stated time, in unix microseconds.
    time: u64,
    files: Vec<PathBuf>,
}

/// The stored statements of key destruction.
#[derive(Debug, Default)]
pub struct DestroyedKeys {
    by_tenant: BTreeMap<String, BTreeMap<ShredKeyId, StatedDestruction>>,
    /// Files that hold no valid statement, each with the reason.
    pub refused: Vec<(PathBuf, String)>,
}

impl DestroyedKeys {
    /// Returns whether a statement says that this key of a tenant was destroyed.
    #[must_use]
    pub fn contains(&self, tenant: &str, key: ShredKeyId) -> bool {
        self.destruction_time(tenant, key).is_some()
    }

    /// Returns the earliest stated time at which this key of a tenant was destroyed, in unix microseconds.
    #[must_use]
    pub fn destruction_time(&self, tenant: &str, key: ShredKeyId) -> Option<u64> {
        Some(self.by_tenant.get(tenant)?.get(&key)?.time)
    }

    /// Returns the files that state the destruction of this key of a tenant.
    #[must_use]
    pub fn statement_files(&self, tenant: &str, key: ShredKeyId) -> &[PathBuf] {
        let stated = self.by_tenant.get(tenant).and_then(|keys| keys.get(&key));
        stated.map_or(&[], |stated| &stated.files)
    }

    /// Returns the destroyed keys, each with its tenant.
    pub fn keys(&self) -> impl Iterator<Item = (&str, ShredKeyId)> {
        self.by_tenant
            .iter()
            .flat_map(|(tenant, keys)| keys.keys().map(|key| (tenant.as_str(), *key)))
    }
}

/// Reads the statements that `keeping` signed for the ledger in this directory. `name` is the name
/// of the ledger.
///
/// # Errors
/// [`EvidenceError::Io`]; [`EvidenceError::Corruption`] when there are more than 65536 files.
pub fn read(
    storage: &dyn ReadStorage,
    ledger: &Path,
    name: &str,
    retention_key: &VerifyingKey,
) -> Result<DestroyedKeys, EvidenceError> {
    let mut destroyed = DestroyedKeys::default();
    for (path, note) in note_files::read(storage, &ledger.join(KEY_DESTRUCTIONS_DIR), MAX_FILES)? {
        let read = note.and_then(|note| {
            let read = KeyDestruction::verify(&note, retention_key).map_err(|error| error.to_string())?;
            match read.ledger == name {
                true => Ok(read),
                false => Err(format!("it is about another ledger, {}", read.ledger)),
            }
        });
        match read {
            Ok(read) => {
                let keys = destroyed.by_tenant.entry(read.tenant).or_default();
                let stated = keys.entry(read.key).or_insert_with(|| StatedDestruction {
                    time: read.time,
                    files: Vec::new(),
                });
                stated.time = read.time.min(stated.time);
                stated.files.push(path);
            }
            Err(why) => destroyed.refused.push((path, why)),
        }
    }
    Ok(destroyed)
}

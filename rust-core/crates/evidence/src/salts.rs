//! The `salts` file: 32 random bytes for each record number, at `32 × seq`.

use crate::{EvidenceError, ReadStorage, read_full};
use std::path::Path;

/// Name of the salts file.
pub const SALTS_FILE: &str = "salts";
/// Number of bytes in a salt.
pub const SALT_LEN: usize = 32;

/// Returns the stored bytes for the salt of record `seq` of an incarnation: the salt itself or, if
/// the admission names a shred key, the half from which the key derives the salt. `None` when it
/// was never written or has been erased (all zeros).
///
/// # Errors
/// [`EvidenceError::Io`] when the file cannot be read.
pub fn read_stored_salt(
    storage: &dyn ReadStorage,
    incarnation_dir: &Path,
    seq: u64,
) -> Result<Option<[u8; SALT_LEN]>, EvidenceError> {
    let path = incarnation_dir.join(SALTS_FILE);
    let file = storage.open(&path).map_err(EvidenceError::io("open", &path))?;
    let mut salt = [0; SALT_LEN];
    let Some(offset) = seq.checked_mul(SALT_LEN as u64) else {
        return Ok(None);
    };
    let read = read_full(&*file, &mut salt, offset).map_err(EvidenceError::io("read", &path))?;
    Ok((read == SALT_LEN && salt != [0; SALT_LEN]).then_some(salt))
}

//! The lock that the writer of a log holds while it runs.

use crate::RetentionError;
use crate::reason::{RetentionReason, damage_reason, reason};
use proofgate_evidence::EvidenceError;
use proofgate_evidence::salts::SALTS_FILE;
use proofgate_wal::{Storage, StoredFile};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Evidence that no writer of a log is running.
pub(crate) enum WriterLock {
    Held(#[expect(dead_code, reason = "the lock is held until this value is dropped")] Arc<dyn StoredFile>),
    /// The file that writers lock is missing.
    Missing,
}

/// Takes the lock that the writer of a log holds while it runs, or returns why that is not possible.
pub(crate) fn try_lock_log(
    storage: &dyn Storage,
    dir: &Path,
) -> Result<Result<WriterLock, RetentionReason>, RetentionError> {
    let path = dir.join(SALTS_FILE);
    let file = match storage.open_writable(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ok(WriterLock::Missing)),
        Err(error) => {
            return Ok(Err(damage_reason(
                EvidenceError::io("open", &path)(error).into(),
            )?));
        }
    };
    let locked = file.try_lock().map_err(EvidenceError::io("lock", &path))?;
    let lives = || reason("locked", "a running worker holds the lock on its salts");
    Ok(locked.then_some(WriterLock::Held(file)).ok_or_else(lives))
}

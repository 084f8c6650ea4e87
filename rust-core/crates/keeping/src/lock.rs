//! The lock that the writer of a log holds while it lives.

use crate::KeepingError;
use crate::reason::{Reason, damaged, reason};
use proofgate_evidence::EvidenceError;
use proofgate_evidence::salts::SALTS;
use proofgate_wal::{Storage, StoredFile};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What shows that no writer of a log lives.
pub(crate) enum Lock {
    Held(#[expect(dead_code, reason = "it is held until it is dropped")] Arc<dyn StoredFile>),
    /// The file that writers lock is gone.
    Nothing,
}

/// Takes the lock that the writer of a log holds while it lives; or says why it cannot be had.
pub(crate) fn lock(storage: &dyn Storage, dir: &Path) -> Result<Result<Lock, Reason>, KeepingError> {
    let path = dir.join(SALTS);
    let file = match storage.open_writable(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ok(Lock::Nothing)),
        Err(error) => {
            return Ok(Err(damaged(EvidenceError::io("open", &path)(error).into())?));
        }
    };
    let locked = file.try_lock().map_err(EvidenceError::io("lock", &path))?;
    let lives = || reason("locked", "a running worker holds the lock on its salts");
    Ok(locked.then_some(Lock::Held(file)).ok_or_else(lives))
}

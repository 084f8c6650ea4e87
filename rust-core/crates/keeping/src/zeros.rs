//! Zeros in the place of salts.

use crate::KeepingError;
use proofgate_evidence::salts::{SALT, SALTS};
use proofgate_evidence::{EvidenceError, ReadStorage, read_full};
use proofgate_wal::{Storage, StoredFile};
use std::io;
use std::path::Path;

/// Salts that are zeroed in one call.
const AT_ONCE: usize = 4096;

/// Whether nothing is left of the salts of these admissions.
pub(crate) fn are_zero(
    storage: &dyn ReadStorage,
    dir: &Path,
    admissions: &[u64],
) -> Result<bool, KeepingError> {
    let path = dir.join(SALTS);
    let file = match storage.open(&path) {
        Ok(file) => file,
        // What is not there tells nothing.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(EvidenceError::io("open", &path)(error).into()),
    };
    for seq in admissions {
        let mut salt = [0; SALT];
        let offset = seq.saturating_mul(SALT as u64);
        read_full(&*file, &mut salt, offset).map_err(EvidenceError::io("read", &path))?;
        if salt != [0; SALT] {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Overwrites the salts of these admissions, in order, with zeros.
pub(crate) fn destroy(storage: &dyn Storage, dir: &Path, admissions: &[u64]) -> Result<(), KeepingError> {
    let path = dir.join(SALTS);
    let file = match storage.open_writable(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(EvidenceError::io("open", &path)(error).into()),
    };
    let length = file.len().map_err(EvidenceError::io("stat", &path))?;
    let mut rest = admissions;
    while let Some(first) = rest.first().copied() {
        let run = rest
            .iter()
            .zip(first..)
            .take(AT_ONCE)
            .take_while(|(seq, expected)| *seq == expected)
            .count();
        let offset = first.saturating_mul(SALT as u64);
        // Never longer than it is: what was not there is not there.
        let bytes = (run * SALT).min(usize::try_from(length.saturating_sub(offset)).unwrap_or(usize::MAX));
        zero(&*file, offset, bytes).map_err(EvidenceError::io("write", &path))?;
        rest = &rest[run..];
    }
    file.sync().map_err(EvidenceError::io("sync", &path))?;
    Ok(())
}

fn zero(file: &dyn StoredFile, offset: u64, bytes: usize) -> io::Result<()> {
    let zeros = vec![0; bytes];
    let mut done = 0;
    while done < bytes {
        match file.write_at(&zeros[done..], offset + done as u64)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => done += written,
        }
    }
    Ok(())
}

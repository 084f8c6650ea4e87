//! Overwriting salts with zeros.

use crate::RetentionError;
use proofgate_evidence::salts::{SALT_LEN, SALTS_FILE};
use proofgate_evidence::{EvidenceError, ReadStorage, read_full};
use proofgate_wal::{Storage, StoredFile};
use std::io;
use std::path::Path;

/// Number of salts that are zeroed in one call.
const CHUNK_SALTS: usize = 4096;

/// Returns whether the salts of these admissions are completely overwritten or missing.
pub(crate) fn are_zeroed(
    storage: &dyn ReadStorage,
    dir: &Path,
    admissions: &[u64],
) -> Result<bool, RetentionError> {
    let path = dir.join(SALTS_FILE);
    let file = match storage.open(&path) {
        Ok(file) => file,
        // A missing file reveals nothing.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(EvidenceError::io("open", &path)(error).into()),
    };
    for seq in admissions {
        let mut salt = [0; SALT_LEN];
        let offset = seq.saturating_mul(SALT_LEN as u64);
        read_full(&*file, &mut salt, offset).map_err(EvidenceError::io("read", &path))?;
        if salt != [0; SALT_LEN] {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Overwrites the salts of these admissions with zeros; the admissions are in order.
pub(crate) fn destroy_salts(
    storage: &dyn Storage,
    dir: &Path,
    admissions: &[u64],
) -> Result<(), RetentionError> {
    let path = dir.join(SALTS_FILE);
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
            .take(CHUNK_SALTS)
            .take_while(|(seq, expected)| *seq == expected)
            .count();
        let offset = first.saturating_mul(SALT_LEN as u64);
        // Never extend the file: a missing salt needs no zeros.
        let bytes =
            (run * SALT_LEN).min(usize::try_from(length.saturating_sub(offset)).unwrap_or(usize::MAX));
        write_zeros(&*file, offset, bytes).map_err(EvidenceError::io("write", &path))?;
        rest = &rest[run..];
    }
    file.sync().map_err(EvidenceError::io("sync", &path))?;
    Ok(())
}

fn write_zeros(file: &dyn StoredFile, offset: u64, bytes: usize) -> io::Result<()> {
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

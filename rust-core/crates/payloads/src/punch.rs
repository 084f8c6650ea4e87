//! Overwrites the stored bodies of exchanges.

use proofgate_evidence::payloads::{
    ENTRY_LEN, HEADER_LEN, PAYLOAD_INDEX_FILE, PAYLOADS_FILE, PayloadField, PayloadFiles,
};
use proofgate_evidence::{EvidenceError, ReadStorage};
use proofgate_wal::{Storage, StoredFile, write_full};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of zeros written in one call.
const ZERO_CHUNK: usize = 256 << 10;

/// Overwrites the stored bodies of these admissions of a log with zeros, and then their index
/// entries. A repeated call completes an interrupted call. Bodies that do not exist are skipped. An
/// index entry that does not lead to a frame of its own exchange is also skipped, so that the bytes
/// of other exchanges remain.
///
/// # Errors
/// [`EvidenceError::Io`].
pub fn punch(storage: &dyn Storage, incarnation_dir: &Path, admissions: &[u64]) -> Result<(), EvidenceError> {
    let Some(files) = PayloadFiles::open(storage, incarnation_dir)? else {
        return Ok(());
    };
    let open = |name: &str| -> Result<(Arc<dyn StoredFile>, PathBuf), EvidenceError> {
        let path = incarnation_dir.join(name);
        let file = storage
            .open_writable(&path)
            .map_err(EvidenceError::io("open", &path))?;
        Ok((file, path))
    };
    let (frames, frames_path) = open(PAYLOADS_FILE)?;
    let (index, index_path) = open(PAYLOAD_INDEX_FILE)?;
    let length = index.len().map_err(EvidenceError::io("stat", &index_path))?;
    for seq in admissions {
        for field in PayloadField::ALL {
            match files.locate(*seq, field) {
                Ok(Some(placed)) => {
                    let begin = placed.offset.saturating_add(HEADER_LEN as u64);
                    write_zeros(&*frames, begin, placed.sealed_len.into())
                        .map_err(EvidenceError::io("write", &frames_path))?;
                }
                Ok(None) | Err(EvidenceError::Corruption { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    frames.sync().map_err(EvidenceError::io("sync", &frames_path))?;
    for seq in admissions {
        let entry = PayloadField::Request
            .entry_offset(*seq)
            .filter(|entry| *entry < length);
        if let Some(entry) = entry {
            let bytes = (length - entry).min(ENTRY_LEN as u64);
            write_zeros(&*index, entry, bytes).map_err(EvidenceError::io("write", &index_path))?;
        }
    }
    index.sync().map_err(EvidenceError::io("sync", &index_path))?;
    Ok(())
}

/// Returns whether no body of these admissions of a log is stored any more.
///
/// # Errors
/// [`EvidenceError::Io`].
pub fn is_punched(
    storage: &dyn ReadStorage,
    incarnation_dir: &Path,
    admissions: &[u64],
) -> Result<bool, EvidenceError> {
    let Some(files) = PayloadFiles::open(storage, incarnation_dir)? else {
        return Ok(true);
    };
    for seq in admissions {
        for field in PayloadField::ALL {
            match files.locate(*seq, field) {
                Ok(None) => {}
                Ok(Some(_)) | Err(EvidenceError::Corruption { .. }) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(true)
}

fn write_zeros(file: &dyn StoredFile, mut offset: u64, bytes: u64) -> io::Result<()> {
    let zeros = vec![0; usize::try_from(bytes).unwrap_or(ZERO_CHUNK).min(ZERO_CHUNK)];
    let end = offset.saturating_add(bytes);
    while offset < end {
        let some = usize::try_from(end - offset)
            .unwrap_or(ZERO_CHUNK)
            .min(ZERO_CHUNK);
        write_full(file, &zeros[..some], offset)?;
        offset += some as u64;
    }
    Ok(())
}
